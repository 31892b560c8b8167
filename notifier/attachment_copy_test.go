package notifier_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
	"github.com/caddy-notify/caddy-notify/notifier/servicetest"
	"github.com/caddy-notify/caddy-notify/notifier/spool"
)

// countingTransport answers requests and counts the bytes of their bodies.
type countingTransport struct {
	answers []servicetest.Answer
	bytes   atomic.Int64
	differs atomic.Bool // the length of a body differs from its header
}

func (d *countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		n, err := io.Copy(io.Discard, r.Body)
		if err != nil {
			return nil, err
		}
		d.bytes.Add(n)
		if n != r.ContentLength {
			d.differs.Store(true)
		}
	}
	return servicetest.Respond(r, d.answers), nil
}

// TestAttachmentsAreNotCopied checks that services send files from memory and
// from disk without copying them.
func TestAttachmentsAreNotCopied(t *testing.T) {
	if !racetest.All() { // the race detector allocates, too
		t.Skip("sends large files with all services")
	}
	const size = 5 << 18 // larger than the memory limit, smaller than the limit for chunked uploads
	data := bytes.Repeat([]byte("\x89PNG\r\n\x1a\nfile"), size/12)
	files := &spool.Spool{MaxSize: 2 * size, MaxCount: 1, Dir: t.TempDir()}
	defer files.Close()
	stored, err := files.Add("graph.png", "image/png", bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	// sent returns the number of bytes sent, and of bytes allocated for it.
	sent := func(e example, a *notifier.Attachment) (out int64, allocated uint64) {
		d := &countingTransport{answers: e.answers}
		sender := notifier.NewSender(egress.NewPoolWithTransport("test", d), 0)
		defer sender.Close()
		destination, err := sender.Parse(e.url, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := &notifier.Message{Body: "see attached", Identity: new(notifier.Identity), Time: time.Now(), Attachments: []*notifier.Attachment{a}}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		sender.Send(context.Background(), m, []notifier.Target{{Destination: destination}}, notifier.Options{Timeout: 30 * time.Second})
		runtime.ReadMemStats(&after)
		if d.differs.Load() {
			t.Errorf("%s: the length of a body differs from its header", e.url)
		}
		return d.bytes.Load(), after.TotalAlloc - before.TotalAlloc
	}
	// A message with a small file is the baseline.
	small := notifier.NewAttachment("graph.png", "image/png", data[:100])
	all := examples(t)
	for _, s := range catalogue() {
		if !s.Attachments {
			continue
		}
		t.Run(s.Name, func(t *testing.T) {
			arrived, http := false, false
			for _, e := range all[s.Name] {
				_, base := sent(e, small)
				for where, a := range map[string]*notifier.Attachment{
					"the disk": stored, "memory": notifier.NewAttachment("graph.png", "image/png", data),
				} {
					out, allocated := sent(e, a)
					http = http || out > 0
					arrived = arrived || out >= size
					if allocated > base+size/2 {
						t.Errorf("%s: from %s, %d KiB were allocated for a file of %d KiB", e.url, where, (allocated-base)>>10, size>>10)
					}
				}
			}
			if http && !arrived {
				t.Error("none of the URLs sends the file")
			}
		})
	}
}
