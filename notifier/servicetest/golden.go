package servicetest

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/golden"
)

// Golden compares what services send with the golden files testdata/*.txt of
// the package under test. A golden file is a list of cases. The upper half of
// a case has the URL, the message and the answers of the service; the lower
// half has the redacted URL, the result and the requests:
//
//	url: gotifys://push.example.org/tok3n?priority=high
//	message: plain
//	answer: /message$ 200 {"id": 1}
//	mask: nonce=\w+
//	---
//	gotifys://push.example.org/xxxxx?priority=high
//	delivered
//	POST https://push.example.org/message
//	...
//	===
//
// The fields of the upper half are:
//
//	url      the notification URL
//	message  the name of a message of [Message]; default: plain
//	answer   pattern, status and body of an answer; the first pattern that
//	         matches "METHOD URL" counts; default: 200 {}
//	files    directory of the files that the URL may name, in the directory of the
//	         package; default: none
//	mask     pattern of text that differs in each run, such as a nonce
//
// If the environment variable UPDATE_GOLDEN is set, Golden writes the lower
// halves instead of comparing them.
func Golden(t *testing.T) {
	for _, file := range Files(t, ".") {
		if filepath.Dir(filepath.Dir(file)) != "." {
			continue // of a package below this one
		}
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			var out strings.Builder
			for i, c := range ReadCases(t, file) {
				got := c.run(t)
				out.WriteString(c.text + "---\n" + got + "===\n")
				if !golden.Update() && got != c.Want {
					t.Errorf("case %d:\n%s--- got\n%s--- want\n%s", i+1, c.text, got, c.Want)
				}
			}
			if golden.Update() {
				golden.Check(t, file, out.String())
			}
		})
	}
}

// Files returns the golden files of the package in dir and of the packages one
// level below it. The test fails if there are none.
func Files(t testing.TB, dir string) (files []string) {
	t.Helper()
	for _, pattern := range []string{"testdata/*.txt", "*/testdata/*.txt"} {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, found...)
	}
	if len(files) == 0 {
		t.Fatalf("%s has no golden files", dir)
	}
	return files
}

// Case is a case of a golden file, see [Golden].
type Case struct {
	URL     string
	Message string // the name of the message
	Answers []Answer
	Masks   []*regexp.Regexp
	Files   string // the directory of the files that the URL may name
	Want    string // the lower half

	text string // the upper half
}

// ReadCases reads a golden file.
func ReadCases(t testing.TB, file string) (cases []Case) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for text := range strings.SplitSeq(strings.TrimSuffix(string(data), "===\n"), "===\n") {
		c := Case{Message: "plain"}
		c.text, c.Want, _ = strings.Cut(text, "---\n")
		for line := range strings.SplitSeq(c.text, "\n") {
			key, value, _ := strings.Cut(line, ": ")
			switch key {
			case "url":
				c.URL = value
			case "message":
				c.Message = value
			case "files":
				c.Files = filepath.Join(filepath.Dir(filepath.Dir(file)), value)
			case "mask":
				c.Masks = append(c.Masks, regexp.MustCompile(value))
			case "answer":
				f := strings.SplitN(value, " ", 3)
				code, err := strconv.Atoi(f[1])
				if err != nil {
					t.Fatalf("%s: %v", file, err)
				}
				c.Answers = append(c.Answers, Answer{regexp.MustCompile(f[0]), code, append(f, "")[2]})
			default:
				if line != "" && !strings.HasPrefix(line, "#") {
					t.Fatalf("%s: unknown field in the line %q", file, line)
				}
			}
		}
		cases = append(cases, c)
	}
	return cases
}

// Recorder returns a recorder that gives the answers of the case.
func (c Case) Recorder() *Recorder {
	return &Recorder{Answers: c.Answers, Masks: c.Masks, Files: c.Files}
}

// run sends the message of the case and returns the lower half.
func (c Case) run(t testing.TB) string {
	t.Helper()
	r := c.Recorder()
	result, err := r.Deliver(c.URL, Message(t, c.Message))
	if err != nil {
		return "refused: " + err.Error() + "\n"
	}
	out := result.Destination + "\n" + string(result.Status)
	if result.Err != nil {
		out += ": " + result.Err.Error()
	}
	return out + "\n" + strings.Join(r.Requests, "\n")
}
