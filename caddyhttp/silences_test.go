package caddyhttp

import (
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// silence makes a silence of the key k, and returns its ID.
func silence(t *testing.T, h *Handler, form string) string {
	t.Helper()
	resp := postWith(t, h, "/notify/k/silences", form)
	var s httpapi.SilenceJSON
	if err := json.Unmarshal([]byte(resp.body), &s); err != nil || resp.status != http.StatusCreated || resp.header.Get("Location") != "/notify/k/silences/"+s.ID {
		t.Fatalf("status %d, Location %q: %s", resp.status, resp.header.Get("Location"), resp.body)
	}
	return s.ID
}

// silences returns the silences of the key k.
func silences(t *testing.T, h *Handler) (all []httpapi.SilenceJSON) {
	t.Helper()
	resp := do(t, h, httptest.NewRequest(http.MethodGet, "/notify/k/silences", nil))
	if err := json.Unmarshal([]byte(resp.body), &all); err != nil || resp.status != http.StatusOK {
		t.Fatalf("status %d: %s", resp.status, resp.body)
	}
	return all
}

// endSilence ends a silence of the key k.
func endSilence(t *testing.T, h *Handler, id string) int {
	t.Helper()
	return do(t, h, httptest.NewRequest(http.MethodDelete, "/notify/k/silences/"+id, nil)).status
}

const managed = "console {\nmanage open\n}\n"

// What is over before a silence ends is silent, and what is still open is told then, in
// one message. Other messages are not sent, and say so.
func TestSilence(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]string{"without rules": "", "with rules": "dedupe 1m"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newPager(t, http.StatusOK)
			dir := t.TempDir()
			inBubble(t, func(t *testing.T) {
				h := newQueueGateway(t, dir, managed, ruledKey(p, rule))
				wantResult(t, h, alertForm("warning", "known", "known")+"&title=disk+known", notifier.Delivered, "")
				id := silence(t, h, "for=2h&title=Disk&reason=deploy&who=Eve")
				down := wantResult(t, h, alertForm("failure", "a", "a")+"&title=disk+a", "queued", notifier.RuleSilenced)
				if u := down.Results[0].Until; u == nil || !u.Equal(time.Now().Add(2*time.Hour)) {
					t.Errorf("until %v", u)
				}
				up := wantResult(t, h, alertForm("success", "a", "a")+"&title=OK:+disk", notifier.Skipped, notifier.RuleSilenced)
				for _, x := range []string{up.ID, down.ID} {
					if m := getMessage(t, h, http.MethodGet, x, typeJSON).queued(t); m.State != "cancelled" || m.Results[0].By != id || m.Results[0].Rule != notifier.RuleSilenced {
						t.Errorf("%+v", m)
					}
				}
				wantResult(t, h, alertForm("failure", "b", "b")+"&title=disk+b", "queued", notifier.RuleSilenced)
				wantResult(t, h, alertForm("failure", "b worse", "b")+"&title=not+matching", "queued", notifier.RuleSilenced)
				wantResult(t, h, alertForm("info", "more about b", "b")+"&title=more", notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, h, alertForm("failure", "c", "c")+"&title=disk+c", "queued", notifier.RuleSilenced)
				wantResult(t, h, "title=disk&body=no+incident&type=failure", notifier.Skipped, notifier.RuleSilenced)
				wantResult(t, h, "title=other&body=passes", notifier.Delivered, "")
				wantResult(t, h, alertForm("failure", "known worse", "known")+"&title=disk+known", "queued", notifier.RuleSilenced)
				wantResult(t, h, alertForm("success", "known over", "known")+"&title=disk+known", notifier.Delivered, "")
				all := silences(t, h)
				if len(all) != 1 || all[0].ID != id || all[0].Messages != 8 || all[0].Reason != "deploy" || all[0].Who != "Eve" || all[0].Title != "Disk" {
					t.Errorf("%+v", all)
				}
				stopApp(t, h)
				h = newQueueGateway(t, dir, managed, ruledKey(p, rule))
				until(t, "2000-01-01 01:59:50")
				told := []string{"warning: disk known | known", "info: other | passes", "success: disk known | known over"}
				got := p.toldTitles()
				if len(got) != 3 || got[0] != told[0] || got[1] != told[1] || !strings.HasPrefix(got[2], told[2]) {
					t.Fatalf("told %q", got)
				}
				until(t, "2000-01-01 02:01:00")
				got = p.toldTitles()
				if len(got) != 4 || !strings.HasPrefix(got[3], "failure: k: 2 failures | ") || !strings.Contains(got[3], "failure: not matching") || !strings.Contains(got[3], "failure: disk c") {
					t.Errorf("told %q", got[3:])
				}
				if all := silences(t, h); len(all) != 0 {
					t.Errorf("%+v are left", all)
				}
				wantResult(t, h, alertForm("success", "b over", "b"), notifier.Delivered, "")
			})
		})
	}
}

// A silence that is ended before its time tells at once what is open. One of another key
// or without a match changes nothing.
func TestSilenceEnded(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, ruledKey(p)+"\nkey l {\nurl "+p.NotifyURL()+"?tz=UTC\n}")
		id := silence(t, h, "until=2000-01-05T00:00:00Z&tag=all")
		wantResult(t, h, alertForm("failure", "down", "a"), "queued", notifier.RuleSilenced)
		if a := postWith(t, h, "/notify/l", "body=elsewhere").queued(t); a.Results[0].Status != notifier.Delivered {
			t.Errorf("%+v", a.Results)
		}
		p.wantTold(t, "info: elsewhere")
		if status := endSilence(t, h, id); status != http.StatusOK {
			t.Fatalf("status %d", status)
		}
		time.Sleep(time.Second)
		p.wantTold(t, "info: elsewhere", "failure: down")
		for _, id := range []string{id, "x", "00000000-0000-0000-0000-000000000000"} {
			if status := endSilence(t, h, id); status != http.StatusNotFound {
				t.Errorf("%s: status %d", id, status)
			}
		}
		wantResult(t, h, "body=after", notifier.Delivered, "")
	})
}

// When an incident is over during a silence of what rules hold, with all of its states,
// none of them is told, also not an earlier resolution. A model has found this.
func TestSilenceOfHeld(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		key := ruledKey(p, "quiet 00:00-03:00 UTC {\ntypes warning\n}", "digest 30m {\ntypes success\n}")
		h := newQueueGateway(t, dir, managed, key)
		wantResult(t, h, alertForm("warning", "down", "a"), "queued", notifier.RuleHeld)
		wantResult(t, h, alertForm("success", "up", "a"), "queued", notifier.RuleDigested)
		again := wantResult(t, h, alertForm("warning", "down again", "a"), "queued", notifier.RuleHeld)
		id := silence(t, h, "for=40m&tag=all")
		stopApp(t, h)
		h = newQueueGateway(t, dir, managed, key) // it looks at what is held
		for range 100 {
			if m := getMessage(t, h, http.MethodGet, again.ID, typeJSON).queued(t); m.Results[0].Rule == notifier.RuleSilenced {
				break
			}
			time.Sleep(time.Second)
		}
		over := wantResult(t, h, alertForm("success", "up again", "a"), notifier.Skipped, notifier.RuleSilenced)
		until(t, "2000-01-01 04:00:00")
		p.wantTold(t)
		if m := getMessage(t, h, http.MethodGet, over.ID, typeJSON).queued(t); m.Results[0].By != id {
			t.Errorf("%+v", m.Results)
		}
	})
}

// A silence does not make a destination forget that it was told of a resolution, or will be.
// A model has found this.
func TestSilenceAfterResolution(t *testing.T) {
	t.Parallel()
	for _, down := range []bool{false, true} {
		p := newPager(t, http.StatusOK)
		dir := t.TempDir()
		inBubble(t, func(t *testing.T) {
			h := newQueueGateway(t, dir, managed, ruledKey(p, "dedupe 1m"))
			time.Sleep(999) // records have microseconds
			wantResult(t, h, alertForm("failure", "down", "a"), notifier.Delivered, "")
			time.Sleep(time.Second)
			if down {
				p.answer(http.StatusServiceUnavailable)
				wantResult(t, h, alertForm("success", "up", "a"), "queued", "")
			} else {
				wantResult(t, h, alertForm("success", "up", "a"), notifier.Delivered, "")
			}
			silence(t, h, "for=8h&tag=all")
			p.answer(http.StatusOK)
			time.Sleep(time.Hour)
			wantResult(t, h, alertForm("failure", "down again", "a"), "queued", notifier.RuleSilenced)
			wantResult(t, h, alertForm("success", "up again", "a"), notifier.Skipped, notifier.RuleSilenced)
		})
	}
}

// The numbers of a chain are silenced each, and are used in their order when the silence
// ends.
func TestSilencedChain(t *testing.T) {
	t.Parallel()
	first, second := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := "key k {\nurl " + first.NotifyURL() + "?tz=UTC 1:ops\nurl " + second.NotifyURL() + "?tz=UTC 2:ops second\n}"
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, key)
		silence(t, h, "for=1h&tag=all")
		a := postWith(t, h, "/notify/k", alertForm("failure", "down", "a")+"&tag=ops").queued(t)
		for _, r := range a.Results {
			if r.Rule != notifier.RuleSilenced {
				t.Errorf("%+v", r)
			}
		}
		time.Sleep(59 * time.Minute)
		first.wantTold(t)
		second.wantTold(t)
		time.Sleep(2 * time.Minute)
		first.wantTold(t, "failure: down")
		second.wantTold(t)
	})
}

// TestSilenceRefused checks the errors of requests for silences.
func TestSilenceRefused(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, ruledKey(p)+"\nkey off {\nurl "+p.NotifyURL()+"\nqueue off\n}")
		for _, tt := range []struct {
			target, form string
			status       int
			want         string
		}{
			{"/notify/k/silences", "for=2h", 400, "match nothing"},
			{"/notify/k/silences", "title=x", 400, "needs an end"},
			{"/notify/k/silences", "title=x&for=2h&until=2000-01-01T03:00:00Z", 400, "not both"},
			{"/notify/k/silences", "title=x&for=-2h", 400, "duration above 0"},
			{"/notify/k/silences", "title=x&until=tomorrow", 400, "with a date and a zone"},
			{"/notify/k/silences", "title=x&until=1999-12-31T00:00:00Z", 400, "past"},
			{"/notify/k/silences", "title=x&for=31d", 400, "30 days"},
			{"/notify/off/silences", "title=x&for=2h", 403, "queue off"},
			{"/notify/none/silences", "title=x&for=2h", 404, "no such key"},
		} {
			if resp := postWith(t, h, tt.target, tt.form); resp.status != tt.status || !strings.Contains(resp.body, tt.want) {
				t.Errorf("%s: status %d, %s", tt.form, resp.status, resp.body)
			}
		}
		if resp := post(t, h, "/notify/k/silences", typeJSON, `{"for": 2}`); resp.status != 400 || !strings.Contains(resp.body, "one JSON object") {
			t.Errorf("status %d, %s", resp.status, resp.body)
		}
		if resp := post(t, h, "/notify/k/silences", "text/plain", "x"); resp.status != 415 {
			t.Errorf("status %d, %s", resp.status, resp.body)
		}
		if resp := postWith(t, h, "/notify/k/silences", "title=x&for=2h", "Sec-Fetch-Site", "cross-site"); resp.status != 403 {
			t.Errorf("another site's page: status %d", resp.status)
		}
		for range 200 {
			silence(t, h, "title=x&for=2h")
		}
		if resp := postWith(t, h, "/notify/k/silences", "title=x&for=2h"); resp.status != 409 || !strings.Contains(resp.body, "200 silences") {
			t.Errorf("status %d, %s", resp.status, resp.body)
		}
	})
	without := newGateway(t, managed+"key k {\nurl json://localhost\n}", "")
	if resp := postWith(t, without, "/notify/k/silences", "title=x&for=2h"); resp.status != 403 || !strings.Contains(resp.body, "add queue to the global option") {
		t.Errorf("status %d, %s", resp.status, resp.body)
	}
	nobody := newGateway(t, "key k {\nurl json://localhost\n}", "")
	if resp := postWith(t, nobody, "/notify/k/silences", "title=x&for=2h"); resp.status != 403 || !strings.Contains(resp.body, "add console") {
		t.Errorf("status %d, %s", resp.status, resp.body)
	}
}

// The page of the console lists silences, makes one and ends one.
func TestSilencesPage(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, managed, "key k {\nurl "+p.NotifyURL()+"?tz=UTC 1:phone\n}")
		page := func(path string) string {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Header.Set("Accept", "text/html")
			return do(t, h, r).body
		}
		html := []string{"Accept", "text/html"}
		if got := page("/notify/console/silences?key=k&tag=phone"); !strings.Contains(got, "Nothing is silent") || !strings.Contains(got, `value="phone"`) {
			t.Error(got)
		}
		if got := page("/notify/console/keys/k"); !strings.Contains(got, `href="../../../notify/console/silences?key=k#silence"`) || !strings.Contains(got, `console/silences?key=k&amp;tag=phone#silence"`) {
			t.Error(got)
		}
		resp := postWith(t, h, "/notify/console/silences?make", "key=k&for=2h&title=disk&reason=new+disks&who=ann", html...)
		if at := resp.header.Get("Location"); resp.status != http.StatusSeeOther || at != "../../notify/console/silences?done=make" {
			t.Fatalf("status %d, %q: %s", resp.status, at, resp.body)
		}
		got := page("/notify/console/silences?done=make")
		for _, want := range []string{"The silence is made.", "<strong>disk…</strong>", "new disks", "by ann", "2000-01-01 02:00:00 UTC"} {
			if !strings.Contains(got, want) {
				t.Errorf("the page lacks %q", want)
			}
		}
		if resp := postWith(t, h, "/notify/console/silences?make", "key=k&for=2h", html...); resp.status != http.StatusBadRequest || !strings.Contains(resp.body, "match nothing") {
			t.Errorf("status %d: %s", resp.status, resp.body)
		}
		resp = postWith(t, h, "/notify/console/silences?end", "key=k&id="+silences(t, h)[0].ID, html...)
		if resp.status != http.StatusSeeOther || len(silences(t, h)) != 0 {
			t.Errorf("status %d: %s", resp.status, resp.body)
		}
	})
}

// TestRecordsFillQueue checks that what rules remember of delivered messages counts for
// max_size: then new messages and silences are refused with the reason, and what ends
// something is not.
func TestRecordsFillQueue(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		keys := "" // each has a share, and they have more of them than there is room
		for i := range 16 {
			keys += strings.Replace(ruledKey(p, "dedupe 1m"), "key k", "key k"+strconv.Itoa(i), 1) + "\n"
		}
		h := newGateway(t, managed+ruledKey(p, "dedupe 1m")+"\n"+keys, "queue {\npath "+dir+"\nwait 5s\nmax_size 8KiB\n}\n")
		startApp(t, h)
		id := silence(t, h, "title=other&for=2h")
		var refused reply
		n := 0
		for ; n < 1000; n++ {
			name := "disk" + strconv.Itoa(n)
			if refused = postWith(t, h, "/notify/k"+strconv.Itoa(n%16), alertForm("failure", name, name)); refused.status != 200 {
				break
			}
		}
		const reason = "the queue is full"
		if n == 0 || refused.status != 503 || refused.header.Get("Retry-After") == "" || !strings.Contains(refused.body, reason) {
			t.Fatalf("after %d: status %d, %s", n, refused.status, refused.body)
		}
		if st, err := h.app.gateway.Rooms.Outbox.Queue.Stats(t.Context()); err != nil || st.Queued+st.Sending > 0 || st.Bytes != st.Records || st.Records < 6<<10 || st.Records > 8<<10 {
			t.Errorf("%+v, %v", st, err)
		}
		for n < 2000 { // a silence is smaller than a message
			if refused = postWith(t, h, "/notify/k/silences", "for=2h&title=disk&reason="+strings.Repeat("x", 200)); refused.status != 201 {
				break
			}
			n++
		}
		if refused.status != 503 || refused.header.Get("Retry-After") == "" || !strings.Contains(refused.body, reason) {
			t.Errorf("a silence: status %d, %s", refused.status, refused.body)
		}
		if status := endSilence(t, h, id); status != 200 {
			t.Errorf("ending a silence: status %d", status)
		}
	})
}

// TestSilenceOnFullDisk checks the answer to a request for a silence when the disk of the
// queue is full.
func TestSilenceOnFullDisk(t *testing.T) {
	e, ok := errors.AsType[*api.Error](httpapi.Answer(&queue.UnavailableError{Err: queue.ErrDiskFull}))
	if !ok || e.Status != http.StatusServiceUnavailable || e.RetryAfter <= 0 || !strings.Contains(e.Error(), "disk is full") || e.Fault == nil {
		t.Errorf("%+v", e)
	}
}
