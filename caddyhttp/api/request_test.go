package api

import (
	"bytes"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"unicode/utf8"
)

// Any input makes a message or an error of the client.
func FuzzRequest(f *testing.F) {
	for _, seed := range [][3]string{
		{"", "application/json", `{"body":"x","tag":[["a"]],"attach":[{"base64":"eA=="}],"urls":["json://h"]}`},
		{"type=info&tag=a", "application/x-www-form-urlencoded", "body=x&title=y&attach=http://127.0.0.1/"},
		{":a.b[0]=body", "text/json", `{"a":{"b":["x"]}}`},
		{"", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"attach\"; filename=\"a\"\r\n\r\n1\r\n--x--\r\n"},
		{"", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"payload\"\r\nContent-Type: application/json\r\n\r\n{\"body\":1}\r\n--x--\r\n"},
		{"%", "text/plain", "x"},
	} {
		f.Add(seed[0], seed[1], []byte(seed[2]))
	}
	limits := Limits{MaxBody: 64 << 10, MaxFileSize: 1 << 10, MaxFiles: 3, RemoteFiles: true}
	f.Fuzz(func(t *testing.T, query, contentType string, body []byte) {
		r := httptest.NewRequest(http.MethodPost, "/notify", bytes.NewReader(body))
		r.URL.RawQuery = query
		r.Header["Content-Type"] = []string{contentType}
		refused := func(err error) bool {
			if err == nil {
				return false
			}
			e, ok := errors.AsType[*Error](err)
			if !ok || e.Status < 400 || e.Status > 499 {
				t.Fatalf("%v is not an error of the client", err)
			}
			return true
		}
		q, err := Read(httptest.NewRecorder(), r, limits)
		if refused(err) {
			return
		}
		defer q.Close()
		m, err := q.Message()
		if refused(err) {
			return
		}
		if strings.TrimSpace(m.Body) == "" && len(q.fileRefs)+len(q.files) == 0 {
			t.Error("the message has neither body nor attachment")
		}
		if !utf8.ValidString(m.Body) || !utf8.ValidString(m.Title) {
			t.Error("the message is not UTF-8")
		}
		_, err = q.tags()
		refused(err)
		_, err = q.urls()
		refused(err)
	})
}
