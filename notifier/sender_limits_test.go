package notifier

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

func TestLimitsCheck(t *testing.T) {
	limits := Limits{Deliveries: 10, Requests: 20, Bytes: 100, Retry: 2, Wait: time.Second, Setting: "client_limits"}
	file := NewAttachment("a", "", make([]byte, 30))
	for name, tt := range map[string]struct {
		urls  []string
		body  string
		files []*Attachment
		hops  int
		want  string // the error; "" for none
	}{
		"as many as possible": {[]string{"probe://h/tok?retry=1", "many://tok?to=a,b,c,d,e,f,g,h,i"}, strings.Repeat("x", 9), nil, 0, ""},
		"recipients": {
			[]string{"probe://h/tok", "many://tok?to=a,b,c,d,e,f,g,h,i,j"},
			"x", nil, 0,
			"11 deliveries, one for each recipient and part; the limit is 10 (client_limits deliveries)",
		},
		"retries": {
			[]string{"many://tok?to=a,b,c,d,e,f,g&retry=2"},
			"x", nil, 0,
			"21 requests, one for each delivery and retry; the limit is 20 (client_limits requests)",
		},
		"retries that are lowered": {[]string{"many://tok?to=a,b,c,d,e,f&retry=9"}, "x", nil, 0, ""},
		"a text": {
			[]string{"many://tok?to=a,b,c,d"},
			strings.Repeat("x", 26), nil, 0,
			"104 B, which is its text and files for each recipient and retry; the limit is 100 B (client_limits bytes)",
		},
		"a text with retries":      {[]string{"probe://h/tok?retry=2"}, strings.Repeat("x", 34), nil, 0, "(client_limits bytes)"},
		"a file":                   {[]string{"probe://h/tok", "probe://h/tok", "probe://h/tok"}, "xxxx", []*Attachment{file}, 0, "102 B"},
		"a file that is not sent":  {[]string{"plain://a", "plain://b", "plain://c", "plain://d"}, "xxxx", []*Attachment{file}, 0, ""},
		"parts":                    {[]string{"probe://h/tok?overflow=split"}, strings.Repeat("x ", 6000), nil, 0, "12 deliveries"},
		"one part":                 {[]string{"probe://h/tok"}, strings.Repeat("x ", 50), nil, 0, ""},
		"one recipient, forwarded": {[]string{"probe://h/tok?retry=2"}, strings.Repeat("x", 50), nil, 1, ""},
		"two, forwarded": {
			[]string{"probe://h/tok", "probe://h/tok"},
			"x", nil, 1,
			"the limit is 1 for a message that comes from another gateway",
		},
	} {
		t.Run(name, func(t *testing.T) {
			var targets []Target
			for _, u := range tt.urls {
				d, err := Parse(u, nil)
				if err != nil {
					t.Fatal(err)
				}
				targets = append(targets, Target{Destination: d})
			}
			err := limits.Check(&Message{Body: tt.body, Format: Text, Attachments: tt.files, Hops: tt.hops}, targets)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// TestRequestsAreCounted checks that requests are counted for all destinations
// of a message together, and that an attempt that exceeds the limit is the last
// one.
func TestRequestsAreCounted(t *testing.T) {
	var n atomic.Int32
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		n.Add(1)
		w.WriteHeader(http.StatusInternalServerError)
	})
	limits := &Limits{Deliveries: 10, Requests: 5, Bytes: 1 << 20, Retry: 3, Wait: time.Millisecond}
	report := send(t, newTestSender(t), hello, Options{Limits: limits}, base+"/tok?retry=3&wait=0", base+"/other?retry=3&wait=0")
	if n.Load() != 5 {
		t.Errorf("%d requests, want 5", n.Load())
	}
	over := 0
	for _, r := range report.Results {
		if e, ok := errors.AsType[*LimitError](r.Err); ok && e.Limit == LimitRequests && !r.Temporary {
			over++
		}
	}
	if over == 0 {
		t.Errorf("no result has the limit: %+v", report.Results)
	}
}

func TestLimitsWarnings(t *testing.T) {
	limits := &Limits{Retry: 2, Wait: time.Second, Setting: "client_limits"}
	for query, want := range map[string]string{
		"":                   "",
		"?retry=2":           "",
		"?wait=0":            "",
		"?retry=2&wait=5":    "",
		"?retry=1&wait=0.25": "wait=0.25 is below the limit of 1s (client_limits wait); 1s is used",
		"?retry=3":           "retry=3 is above the limit of 2 (client_limits retry); 2 is used",
	} {
		d, err := Parse("probe://h/tok"+query, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := strings.Join(limits.Warnings(d), "; "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}
