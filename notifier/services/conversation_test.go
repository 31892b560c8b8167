package services

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// conversation is a service that keeps state and refuses what the real one
// refuses, and what is to come of messages to it.
type conversation struct {
	name, url string
	message   string // default: plain
	files     []string
	err       string   // part of the error; "" where the message arrives
	want      []string // what the service has in the end, sorted
}

// hold runs the conversations, each with a new service of its own, which
// notes down what it has by calling the function that it gets.
func hold(t *testing.T, service func(have func(format string, args ...any)) pushService, conversations []conversation) {
	t.Helper()
	for _, x := range conversations {
		t.Run(x.name, func(t *testing.T) {
			var got []string
			f := service(func(format string, args ...any) { got = append(got, fmt.Sprintf(format, args...)) })
			m := message(t, "plain")
			if x.message != "" {
				m = message(t, x.message)
			}
			for _, kind := range x.files {
				m.Attachments = append(m.Attachments, notifier.NewAttachment("file", kind, pixel))
			}
			err := f.destination(t, x.url)(m)
			if (err == nil) != (x.err == "") || err != nil && !strings.Contains(err.Error(), x.err) {
				t.Errorf("the error is %v, want %q", err, x.err)
			}
			if slices.Sort(got); !slices.Equal(got, x.want) {
				t.Errorf("the service has %q, want %q", got, x.want)
			}
		})
	}
}

// fields are those of a form in several parts, files among them.
func fields(q *http.Request, body string) map[string][]string {
	_, params, _ := mime.ParseMediaType(q.Header.Get("Content-Type"))
	r, out := multipart.NewReader(strings.NewReader(body), params["boundary"]), map[string][]string{}
	for {
		p, err := r.NextPart()
		if err != nil {
			return out
		}
		text, _ := io.ReadAll(p)
		out[p.FormName()] = append(out[p.FormName()], string(text))
	}
}

// A Mastodon server attaches what was uploaded and not used, up to four
// pictures or one other file.
func TestMastodonConversation(t *testing.T) {
	hold(t, func(have func(string, ...any)) pushService {
		media := map[string]string{} // types of what is not attached yet
		return func(q *http.Request, body string) (int, string) {
			var in struct {
				Status, Visibility string
				Media              []string `json:"media_ids"`
			}
			_ = json.Unmarshal([]byte(body), &in)
			switch {
			case q.Header.Get("Authorization") != "Bearer tok3n":
				return 401, `{"error":"The access token is invalid"}`
			case q.URL.Path == "/api/v1/accounts/verify_credentials":
				return 200, `{"username":"ann"}`
			case q.URL.Path == "/api/v1/media":
				file := fields(q, body)["file"]
				if len(file) != 1 || file[0] != string(pixel) {
					return 422, `{"error":"Validation failed: File can't be blank"}`
				}
				id := fmt.Sprint("m", len(media))
				kind, _, _ := strings.Cut(fields(q, body)["description"][0], ".")
				media[id] = kind
				return 200, fmt.Sprintf(`{"id":%q}`, id)
			case in.Status == "" && len(in.Media) == 0:
				return 422, `{"error":"Validation failed: Text can't be blank"}`
			case len(in.Media) > 4:
				return 422, `{"error":"Cannot attach more than 4 files"}`
			}
			for _, id := range in.Media {
				switch kind, ok := media[id]; {
				case !ok || kind == "used":
					return 422, `{"error":"Validation failed: Media not found"}`
				case len(in.Media) > 1 && kind != "image":
					return 422, `{"error":"Cannot attach a video to a post that already contains images"}`
				}
				media[id] = "used"
			}
			have("%s: %d files", strings.Fields(in.Status)[0], len(in.Media))
			return 200, `{"id":"1"}`
		}
	}, []conversation{
		{name: "direct", url: "mastodon://tok3n@example.org?visibility=direct", want: []string{"@ann: 0 files"}},
		{name: "an expired token", url: "mastodon://old@example.org", err: "The access token is invalid"},
	})
}
