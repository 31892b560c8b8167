package notifier

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// limitedServer is a destination that refuses long texts and files.
type limitedServer struct {
	max   int  // maximum length of a text
	files bool // accepts files
	code  int  // status of a refusal

	mu  sync.Mutex
	got []string // the lengths of accepted texts, and the names of files
}

func (p *limitedServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if strings.HasSuffix(r.URL.Path, "/upload") {
		_, _ = io.Copy(io.Discard, r.Body)
		p.got = append(p.got, "upload")
		return
	}
	if err := r.ParseMultipartForm(1 << 20); err != nil {
		w.WriteHeader(http.StatusInternalServerError)
		return
	}
	body, files := r.FormValue("body"), r.MultipartForm.File["file"]
	if len(body) > p.max || len(files) > 0 && !p.files {
		w.WriteHeader(p.code)
		return
	}
	p.got = append(p.got, fmt.Sprint(len(body)))
	for _, f := range files {
		p.got = append(p.got, f.Filename)
	}
}

// TestDegraded checks that a destination that refuses a message gets as much of
// it as it accepts.
func TestDegraded(t *testing.T) {
	file := []*Attachment{NewAttachment("a.png", "image/png", []byte("x"))}
	const taken, long = 1000, 2500 // the probe's limit, and a length above it
	for _, tt := range []struct {
		name   string
		dest   *limitedServer
		body   int
		files  []*Attachment
		query  string
		got    string
		status Status
		text   string // expected in the error, or else in the records
		tries  int
	}{
		{
			"a long text goes in parts", &limitedServer{max: taken, code: 400}, long,
			nil, "", "1000 1000 500", Delivered, "refused the text in one piece", 2,
		},
		{
			"the file with the last", &limitedServer{max: taken, code: 413, files: true}, long,
			file, "", "1000 1000 500 a.png", Delivered, "refused the text in one piece", 2,
		},
		{
			"a text without its file", &limitedServer{max: taken, code: 415}, 5, file, "", "5", Failed,
			"the text has arrived, but not the files, which were refused: the service answered 415", 2,
		},
		{
			"a long text without its file", &limitedServer{max: taken, code: 422}, long,
			file, "", "1000 1000 500", Failed, "the text has arrived, but not the files", 3,
		},
		{
			"the beginning of a very long text", &limitedServer{max: taken, code: 400},
			10*taken + 1, nil, "", "1000", Failed, "only the beginning of the text has arrived", 2,
		},
		{
			"after further attempts", &limitedServer{max: taken, code: 400}, long, nil,
			"?retry=1&wait=0", "1000 1000 500", Delivered, "refused the text in one piece", 3,
		},
		{
			"a text that the URL has cut is not divided", &limitedServer{max: 500, code: 400},
			long, nil, "?overflow=truncate", "", Failed, "answered 400", 1,
		},
		{"a step is done already", &limitedServer{max: taken, code: 400}, long, nil, "?mode=once", "upload", Failed, "answered 400", 1},
		{
			"a step is done that may have sent the text", &limitedServer{max: taken, code: 400},
			5, file, "?mode=once", "upload", Failed, "answered 400", 1,
		},
		{"another refusal", &limitedServer{max: taken, code: 403}, long, file, "", "", Failed, "answered 403", 1},
		{"a destination that refuses everything", &limitedServer{max: -1, code: 400}, long, file, "", "", Failed, "answered 400", 3},
		{
			"a line about a file without a text", &limitedServer{max: taken, code: 400}, 0, file, "", "11", Failed,
			"the text has arrived, but not the files", 2,
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			base := target(t, tt.dest.ServeHTTP)
			m := &Message{Body: strings.Repeat("x", tt.body), Attachments: tt.files}
			report := send(t, newTestSender(t), m, Options{}, base+"/tok"+tt.query)
			r := report.Results[0]
			if got := strings.Join(tt.dest.got, " "); got != tt.got {
				t.Errorf("arrived: %s, want %s", got, tt.got)
			}
			text := fmt.Sprint(r.Err)
			if r.Err == nil {
				text = fmt.Sprint(report.Records)
			}
			if r.Status != tt.status || r.Attempts != tt.tries || !strings.Contains(text, tt.text) {
				t.Errorf("%s after %d: %s", r.Status, r.Attempts, text)
			}
		})
	}
}
