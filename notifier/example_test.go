package notifier_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/egress"
)

// doorbell is a service with one HTTP request.
type doorbell struct {
	notifier.Server
	key   string
	rings int
}

var _ = notifier.Register[doorbell]()

func (d *doorbell) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Doorbell", "https://doorbell.example.com/api"
	s.URL("doorbell[s]://{host}[:{port}]/{key}")
	s.Server(&d.Server)
	s.Secret(&d.key, "key", "the key on the back of the doorbell")
	s.Int(&d.rings, "rings", 1, "how often to ring").Range(1, 5)
}

func (d *doorbell) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	payload := map[string]any{"text": m.Text(": "), "rings": d.rings}
	return c.PostJSON(ctx, d.URL("ring"), payload, "X-Key", d.key)
}

// One call sends a message, to one URL or to several.
func ExampleSend() {
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var got struct{ Title, Message string }
		_ = json.NewDecoder(r.Body).Decode(&got)
		fmt.Println("the server got", got.Title+":", got.Message)
	}))
	defer server.Close()
	url := "json://" + strings.TrimPrefix(server.URL, "http://") // json://127.0.0.1:43210

	err := notifier.Send(context.Background(), url, &notifier.Message{Title: "Backup", Body: "done"})
	fmt.Println(err)
	// Output:
	// the server got Backup: done
	// <nil>
}

// What has failed for now is sent again later, and only there.
func ExampleSendError() {
	var requests atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.WriteHeader(http.StatusBadGateway)
		}
	}))
	defer server.Close()
	url := "json://" + strings.TrimPrefix(server.URL, "http://")

	err := notifier.Send(context.Background(), url, &notifier.Message{Body: "hello"})
	fmt.Println(err)
	for e, ok := errors.AsType[*notifier.SendError](err); ok && e.Temporary(); e, ok = errors.AsType[*notifier.SendError](err) {
		time.Sleep(max(e.RetryAfter(), time.Millisecond)) // a program waits longer
		err = e.Retry(context.Background())
	}
	fmt.Println(err)
	// Output:
	// JSON: the service answered 502 Bad Gateway
	// <nil>
}

// A service declares its URLs and sends. Everything else is derived.
func ExampleRegister() {
	// var _ = notifier.Register[doorbell]() registers this service:
	//
	//	func (d *doorbell) Describe(s *notifier.Schema) {
	//		s.Name, s.Site = "Doorbell", "https://doorbell.example.com/api"
	//		s.URL("doorbell[s]://{host}[:{port}]/{key}")
	//		s.Server(&d.Server)
	//		s.Secret(&d.key, "key", "the key on the back of the doorbell")
	//		s.Int(&d.rings, "rings", 1, "how often to ring").Range(1, 5)
	//	}
	//
	//	func (d *doorbell) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	//		payload := map[string]any{"text": m.Text(": "), "rings": d.rings}
	//		return c.PostJSON(ctx, d.URL("ring"), payload, "X-Key", d.key)
	//	}
	d, err := notifier.Parse("doorbells://home.example.com/s3cret?rings=2", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	dry := d.DryRun(context.Background(), "example", &notifier.Message{Title: "Backup", Body: "done"})
	fmt.Println(dry.Requests[0])

	_, err = notifier.Parse("doorbell://home.example.com/s3cret?rings=9", nil)
	fmt.Println(err)
	// Output:
	// POST https://home.example.com/ring
	// Content-Type: application/json
	// User-Agent: example
	// X-Key: xxxxx
	//
	// {
	//   "rings": 2,
	//   "text": "Backup: done"
	// }
	//
	// Doorbell: rings (how often to ring) must be a whole number from 1 to 5
}

func ExampleParse() {
	d, err := notifier.Parse("gotifys://push.example.com/AbCdEf?priority=8", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Service())
	fmt.Println(d) // secrets are masked
	fmt.Println(d.URL())
	// Output:
	// Gotify
	// gotifys://push.example.com/xxxxx?priority=high
	// gotifys://push.example.com/AbCdEf?priority=high
}

// A policy decides which addresses the URLs of clients may reach.
func ExampleParse_policy() {
	policy, err := egress.NewPolicy(nil, nil) // no private addresses
	if err != nil {
		fmt.Println(err)
		return
	}
	d, err := notifier.Parse("gotify://127.0.0.1/AbCdEf", policy)
	if err != nil {
		fmt.Println(err)
		return
	}
	s := notifier.NewSender(egress.NewPool("example"), 0)
	report := s.Send(context.Background(), &notifier.Message{Body: "hello"}, []notifier.Target{{Destination: d}}, notifier.Options{})
	fmt.Println(report.Results[0].Status, report.Results[0].Temporary)
	// Output: failed false
}

func ExampleSender_Send() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Println(r.Method, r.URL.Path, string(body))
	}))
	defer server.Close()

	s := notifier.NewSender(egress.NewPool("example/1.0"), 0)
	defer s.Close()
	d, err := s.Parse("doorbell://"+strings.TrimPrefix(server.URL, "http://")+"/s3cret", nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	m := &notifier.Message{Title: "Backup", Body: "the disk is <b>full</b>", Format: notifier.HTML, Type: notifier.Failure}
	report := s.Send(context.Background(), m, []notifier.Target{{Destination: d}}, notifier.Options{})
	for _, r := range report.Results {
		fmt.Println(r.Service, r.Status, r.Err)
	}
	// Output:
	// POST /ring {"rings":1,"text":"Backup: the disk is full"}
	// Doorbell delivered <nil>
}

// A delivery that failed continues later, also in another process. It sends
// nothing twice.
func ExampleProgress() {
	down := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var message struct{ Topic string }
		_ = json.NewDecoder(r.Body).Decode(&message)
		if message.Topic == "bob" && down {
			w.Header().Set("Retry-After", "60")
			w.WriteHeader(http.StatusServiceUnavailable)
			return
		}
		fmt.Println("a message for", message.Topic)
	}))
	defer server.Close()
	url := "ntfy://" + strings.TrimPrefix(server.URL, "http://") + "/alice/bob"
	m := &notifier.Message{Body: "hello"}

	attempt := func(p *notifier.Progress) notifier.Result {
		s := notifier.NewSender(egress.NewPool("example"), 0)
		d, err := s.Parse(url, nil)
		if err != nil {
			fmt.Println(err)
		}
		targets := []notifier.Target{{Destination: d, Progress: p}}
		return s.Send(context.Background(), m, targets, notifier.Options{}).Results[0]
	}

	r := attempt(nil)
	fmt.Println(r.Status, r.Temporary, r.RetryAfter)
	saved, _ := json.Marshal(r.Progress)

	down = false
	var p notifier.Progress
	if err := json.Unmarshal(saved, &p); err != nil {
		fmt.Println(err)
	}
	fmt.Println(attempt(&p).Status)
	// Output:
	// a message for alice
	// failed true 1m0s
	// a message for bob
	// delivered
}

func ExampleParseTags() {
	e, err := notifier.ParseTags("ops db, admins") // (ops AND db) OR admins
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(e.Match([]string{"ops"}))
	fmt.Println(e.Match([]string{"db", "ops", "home"}))
	fmt.Println(e.Match([]string{"Admins"}))

	_, err = notifier.ParseTags("ops!")
	fmt.Println(err)
	// Output:
	// false
	// true
	// true
	// a tag expression may not hold the character '!'; use letters, digits, - and _ for names, a comma for OR and a space for AND
}
