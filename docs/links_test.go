package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
)

// TestLinks follows every relative link and anchor in the Markdown files of
// the repository.
func TestLinks(t *testing.T) {
	pages := map[string]*page{}
	for _, name := range markdownFiles(t) {
		pages[name] = readPage(t, name)
	}
	for _, p := range pages {
		for _, l := range p.links {
			if err := follow(pages, p, l.target); err != nil {
				t.Errorf("%s:%d: the link %s: %v", p.path, l.line, l.target, err)
			}
		}
	}
	// Every page of this folder can be reached from its index, and so can those about decisions.
	for name := range pages {
		if dir, file := path.Split(name); dir == "docs/" && file != "README.md" && !linksTo(pages["docs/README.md"], file) {
			t.Errorf("docs/README.md has no link to %s", file)
		} else if dir == "docs/decisions/" && file != "README.md" && !linksTo(pages[dir+"README.md"], file) {
			t.Errorf("%sREADME.md has no link to %s", dir, file)
		}
	}
}

func follow(pages map[string]*page, from *page, target string) error {
	if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
		return nil // links to other sites are not followed
	}
	file, anchor, _ := strings.Cut(target, "#")
	to := from
	if file != "" {
		name := path.Join(path.Dir(from.path), file)
		if name == ".." || strings.HasPrefix(name, "../") {
			return errors.New("it points outside the repository")
		}
		if _, err := os.Stat(filepath.Join(root, name)); err != nil {
			return errors.New("the file does not exist")
		}
		to = pages[name]
	}
	switch {
	case anchor == "":
		return nil
	case to == nil:
		return errors.New("only Markdown files have anchors")
	case !to.anchors[anchor]:
		return fmt.Errorf("%s has no heading for the anchor", to.path)
	}
	return nil
}

func linksTo(p *page, target string) bool {
	for _, l := range p.links {
		if l.target == target {
			return true
		}
	}
	return false
}
