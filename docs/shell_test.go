package docs_test

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// command is one stage of a pipe in a sh block.
type command []string

// splitShell splits a sh block into commands, each of one or more stages. It
// understands quotes, line continuations, comments and pipes.
func splitShell(text string) (lines [][]command, err error) {
	var line []command
	var words command
	var word strings.Builder
	inWord := false
	endWord := func() {
		if inWord {
			words = append(words, word.String())
			word.Reset()
			inWord = false
		}
	}
	endStage := func() {
		endWord()
		if len(words) > 0 {
			line = append(line, words)
			words = nil
		}
	}
	for text != "" {
		c := text[0]
		switch {
		case strings.HasPrefix(text, "\\\n"):
			text = text[2:]
			endWord()
			continue
		case c == '\'' || c == '"':
			end := strings.IndexByte(text[1:], c)
			if end < 0 {
				return nil, errors.New("a quote is not closed")
			}
			word.WriteString(text[1 : 1+end])
			inWord = true
			text = text[end+2:]
			continue
		case c == '#' && !inWord:
			_, text, _ = strings.Cut(text, "\n")
			continue
		case c == '|':
			endStage()
		case c == '\n':
			endStage()
			if len(line) > 0 {
				lines = append(lines, line)
				line = nil
			}
		case unicode.IsSpace(rune(c)):
			endWord()
		default:
			word.WriteByte(c)
			inWord = true
		}
		text = text[1:]
	}
	endStage()
	if len(line) > 0 {
		lines = append(lines, line)
	}
	return lines, nil
}

// curl holds the options of a curl command.
type curl struct {
	method   string
	address  string
	header   http.Header
	data     []string // joined by &
	parts    []string // of a multipart form
	user     string
	globOff  bool
	showHead bool
}

// parseCurl parses the options that the pages use.
func parseCurl(words command, dir string) (*curl, error) {
	c := &curl{header: http.Header{}}
	for i := 1; i < len(words); i++ {
		w := words[i]
		value := func() string {
			i++
			if i < len(words) {
				return words[i]
			}
			return ""
		}
		switch w {
		case "-d", "--data", "--data-binary":
			text := value()
			if name, ok := strings.CutPrefix(text, "@"); ok {
				content, err := os.ReadFile(filepath.Join(dir, name))
				if err != nil {
					return nil, err
				}
				text = string(content)
			}
			c.data = append(c.data, text)
		case "--data-urlencode":
			name, text, ok := strings.Cut(value(), "=")
			if before, found := strings.CutSuffix(name, "@-"); found && !ok {
				name, text = before, "what another program has printed"
			}
			c.data = append(c.data, name+"="+url.QueryEscape(text))
		case "-F":
			c.parts = append(c.parts, value())
		case "-H":
			name, text, _ := strings.Cut(value(), ":")
			c.header.Set(name, strings.TrimSpace(text))
		case "-X":
			c.method = value()
		case "-u":
			c.user = value()
		case "-m", "--max-time", "--retry", "-o", "-w":
			value() // how long, how often, and what is shown
		case "-g":
			c.globOff = true
		case "-i":
			c.showHead = true
		case "-f", "-s", "-S", "-N", "-fsS":
		default:
			if strings.HasPrefix(w, "-") {
				return nil, fmt.Errorf("unknown curl option %s; add it to the test", w)
			}
			if c.address != "" {
				return nil, fmt.Errorf("two addresses, %s and %s", c.address, w)
			}
			c.address = w
		}
	}
	if strings.ContainsAny(c.address, "[]{}") && !c.globOff {
		return nil, errors.New("curl reads brackets in an address as a pattern; add -g")
	}
	return c, nil
}

// request makes the HTTP request that curl would send.
func (c *curl) request(dir string) (*http.Request, error) {
	var body bytes.Buffer
	method, contentType := http.MethodGet, ""
	switch {
	case len(c.parts) > 0:
		method = http.MethodPost
		w := multipart.NewWriter(&body)
		for _, p := range c.parts {
			if err := addPart(w, p, dir); err != nil {
				return nil, err
			}
		}
		if err := w.Close(); err != nil {
			return nil, err
		}
		contentType = w.FormDataContentType()
	case len(c.data) > 0:
		method, contentType = http.MethodPost, "application/x-www-form-urlencoded"
		body.WriteString(strings.Join(c.data, "&"))
	}
	if c.method != "" {
		method = c.method
	}
	r, err := http.NewRequest(method, c.address, &body)
	if err != nil {
		return nil, err
	}
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	maps.Copy(r.Header, c.header)
	if c.user != "" {
		user, password, _ := strings.Cut(c.user, ":")
		r.SetBasicAuth(user, password)
	}
	return r, nil
}

// addPart adds a part as curl -F does: name=text or name=@file, optionally
// followed by ;type=.
func addPart(w *multipart.Writer, text, dir string) error {
	text, contentType, typed := strings.Cut(text, ";type=")
	name, value, _ := strings.Cut(text, "=")
	h := textproto.MIMEHeader{}
	disposition := fmt.Sprintf("form-data; name=%q", name)
	content := []byte(value)
	if file, ok := strings.CutPrefix(value, "@"); ok {
		var err error
		if content, err = os.ReadFile(filepath.Join(dir, file)); err != nil {
			return err
		}
		disposition += fmt.Sprintf("; filename=%q", file)
	}
	h.Set("Content-Disposition", disposition)
	if typed {
		h.Set("Content-Type", contentType)
	}
	part, err := w.CreatePart(h)
	if err != nil {
		return err
	}
	_, err = part.Write(content)
	return err
}
