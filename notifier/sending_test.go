package notifier

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// chainTarget is a destination of TestChains: it has tags, and fails or not.
type chainTarget struct{ tags, name string }

// TestChains checks which targets get a message by the numbers of their tags,
// and its outcome.
func TestChains(t *testing.T) {
	var mu sync.Mutex
	var got []string
	base := target(t, func(w http.ResponseWriter, r *http.Request) {
		name := strings.Split(r.URL.Path, "/")[1]
		mu.Lock()
		got = append(got, name)
		mu.Unlock()
		if strings.HasPrefix(name, "bad") {
			w.WriteHeader(503)
		}
	})
	s := newTestSender(t)
	for _, tt := range []struct {
		expr    string
		targets []chainTarget
		want    string // who gets it, sorted
		ok      bool
		status  string // of each target: delivered, failed, skipped; "-" before a failure that does not count
	}{
		{"ops", []chainTarget{{"1:ops", "a"}, {"2:ops", "b"}}, "a", true, "delivered skipped"},
		{"ops", []chainTarget{{"2:ops", "a"}, {"1:ops", "bad"}}, "a bad", true, "delivered -failed"},
		{
			"ops",
			[]chainTarget{{"1:ops", "a"}, {"1:ops", "bad"}, {"2:ops", "b"}, {"3:ops", "c"}},
			"a b bad", true, "delivered -failed delivered skipped",
		},
		{"ops", []chainTarget{{"1:ops", "bad"}, {"2:ops", "b"}, {"2:ops", "bad2"}}, "b bad bad2", false, "failed delivered failed"},
		{"ops", []chainTarget{{"1:ops", "bad?optional=yes"}, {"2:ops", "b"}}, "bad", true, "-failed skipped"},
		{"ops", []chainTarget{{"ops", "bad"}, {"1:ops", "b"}}, "b bad", true, "-failed delivered"}, // no number is 0
		{
			"ops,db",
			[]chainTarget{{"1:ops", "bad"}, {"2:ops", "b"}, {"1:db", "c"}, {"2:db", "d"}},
			"b bad c", true, "-failed delivered delivered skipped",
		},
		{"ops,db", []chainTarget{{"1:ops", "bad"}, {"1:db", "c"}, {"2:db", "d"}}, "bad c", false, "failed delivered skipped"},
		{"2:ops", []chainTarget{{"1:ops", "a"}, {"2:ops", "b"}}, "b", true, "delivered"},
		{"1:ops,2:ops", []chainTarget{{"1:ops", "a"}, {"2:ops", "b"}}, "a b", true, "delivered delivered"},
		{"all", []chainTarget{{"1:ops", "a"}, {"2:ops", "b"}}, "a b", true, "delivered delivered"},
		{"ops:2", []chainTarget{{"1:ops", "bad?wait=0"}, {"2:ops", "b"}}, "b bad bad bad", true, "-failed delivered"},
		{"ops:0", []chainTarget{{"ops", "bad?retry=3&wait=0"}}, "bad", false, "failed"},
	} {
		e, err := ParseTags(tt.expr)
		if err != nil {
			t.Fatal(err)
		}
		var targets []Target
		for _, x := range tt.targets {
			name, query, _ := strings.Cut(x.name, "?")
			d, err := Parse(base+"/"+name+"/tok?"+query, nil)
			if err != nil {
				t.Fatal(err)
			}
			targets = append(targets, Target{Destination: d, Tags: []string{x.tags}})
		}
		got = nil
		targets = e.Select(targets)
		ended := make([]string, len(targets))
		report := s.Send(context.Background(), hello, targets, Options{Observers: []Observer{{
			End: func(_ context.Context, i int, r Result) { ended[i] = chainStatus(r) },
		}}})
		var status []string
		for _, r := range report.Results {
			status = append(status, chainStatus(r))
			if r.OK() && (r.Temporary || r.Progress != nil) && !strings.Contains(r.Destination, "optional") {
				t.Errorf("%s: a queue would try %+v again", tt.expr, r)
			}
		}
		slices.Sort(got)
		if g := strings.Join(got, " "); g != tt.want || report.OK() != tt.ok || strings.Join(status, " ") != tt.status {
			t.Errorf("%s for %v: sent to %q, OK %v, %q; want %q, %v, %q", tt.expr, tt.targets, g, report.OK(), status, tt.want, tt.ok, tt.status)
		}
		if !slices.Equal(ended, status) {
			t.Errorf("%s for %v: the observers got %q, want %q", tt.expr, tt.targets, ended, status)
		}
		for _, r := range report.Records {
			if tt.ok && r.Level == LevelError && !r.Optional {
				t.Errorf("%s for %v: the record %q counts", tt.expr, tt.targets, r.Text)
			}
		}
	}
}

func chainStatus(r Result) string {
	if r.Err != nil && r.OK() {
		return "-" + string(r.Status)
	}
	return string(r.Status)
}
