package docs_test

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

// root is the folder of the repository.
const root = ".."

// page is a Markdown file.
type page struct {
	path     string // relative to root, with slashes
	anchors  map[string]bool
	links    []link
	blocks   []block
	prose    string // the text without blocks
	codeless string // the same without code spans
}

type link struct {
	target string
	line   int
}

// block is a fenced block of code.
type block struct {
	page     string
	line     int // of the fence
	language string
	text     string
	follows  int // the index of the block before it if only blank lines separate them, else -1
}

func (b block) String() string { return fmt.Sprintf("%s:%d", b.page, b.line) }

var (
	fence    = regexp.MustCompile("^(\\s*)```(\\w*)\\s*$")
	heading  = regexp.MustCompile(`^#{1,6}\s+(.*)$`)
	codeSpan = regexp.MustCompile("`([^`]*)`")
	linkText = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	oldName  = regexp.MustCompile(`^<a id="([a-z-]+)"></a>$`) // an anchor of a heading that had another text
)

// readPage parses a Markdown file.
func readPage(t *testing.T, path string) *page {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	p := &page{path: path, anchors: map[string]bool{}}
	var prose strings.Builder
	var open *block
	indent, blankSince := "", false
	n := 0
	for line := range strings.Lines(string(content)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		m := fence.FindStringSubmatch(line)
		switch {
		case m != nil && open == nil:
			indent = m[1]
			open = &block{page: path, line: n, language: m[2], follows: -1}
			if blankSince {
				open.follows = len(p.blocks) - 1
			}
			continue
		case m != nil:
			p.blocks = append(p.blocks, *open)
			open, blankSince = nil, true
			continue
		case open != nil:
			open.text += strings.TrimPrefix(line, indent) + "\n"
			continue
		}
		if strings.TrimSpace(line) != "" {
			blankSince = false
		}
		prose.WriteString(line + "\n")
		if m := heading.FindStringSubmatch(line); m != nil {
			p.addAnchor(m[1])
		}
		if m := oldName.FindStringSubmatch(line); m != nil {
			p.anchors[m[1]] = true
		}
		for _, m := range linkText.FindAllStringSubmatch(codeSpan.ReplaceAllString(line, ""), -1) {
			p.links = append(p.links, link{m[1], n})
		}
	}
	if open != nil {
		t.Fatalf("%s: the block is not closed", open)
	}
	p.prose = prose.String()
	p.codeless = codeSpan.ReplaceAllString(p.prose, "")
	return p
}

// addAnchor adds the anchor that GitHub generates for a heading.
func (p *page) addAnchor(text string) {
	text = linkText.ReplaceAllStringFunc(text, func(l string) string { return l[1:strings.Index(l, "](")] })
	slug := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r) || r == '-' || r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(text))
	name := slug
	for i := 1; p.anchors[name]; i++ {
		name = fmt.Sprintf("%s-%d", slug, i)
	}
	p.anchors[name] = true
}

// markdownFiles lists the Markdown files of the repository.
func markdownFiles(t *testing.T) (paths []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		switch {
		case d.IsDir() && (d.Name() == ".git" || d.Name() == "testdata"):
			return filepath.SkipDir
		case !d.IsDir() && filepath.Ext(path) == ".md":
			path, err = filepath.Rel(root, path)
			paths = append(paths, filepath.ToSlash(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// userPages reads the README and the pages of this folder. Those of decisions are for contributors.
func userPages(t *testing.T) (pages []*page) {
	t.Helper()
	for _, path := range markdownFiles(t) {
		if path == "README.md" || strings.HasPrefix(path, "docs/") && !strings.HasPrefix(path, "docs/decisions/") {
			pages = append(pages, readPage(t, path))
		}
	}
	return pages
}
