package caddyhttp

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// beat sends a beat, and checks the status.
func beat(t *testing.T, h *Handler, method, target, body string, status int) reply {
	t.Helper()
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	got := do(t, h, r)
	if got.status != status {
		t.Errorf("%s %s: status %d, want %d: %s", method, target, got.status, status, got.body)
	}
	synctest.Wait()
	return got
}

const expectNightly = "expect nightly every 20m grace 5m"

// TestMissedBeat checks that a late beat is told once, that the next one is told as a
// success of the same incident, and that it is told again after that.
func TestMissedBeat(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, expectNightly)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		until(t, "2000-01-01 00:10:00")
		got := beat(t, h, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		if !strings.Contains(got.body, "Beat nightly has come. The next one is due by 2000-01-01 00:30") {
			t.Errorf("the answer is %s", got.body)
		}
		until(t, "2000-01-01 00:34:00")
		p.wantTold(t)
		until(t, "2000-01-01 02:00:00")
		late := "failure: nightly is late | The last beat came at 2000-01-01 00:10 UTC. One is expected every 20m, with a grace of 5m."
		p.wantTold(t, late)
		beat(t, h, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		back := "success: nightly is back | The beat has come. It was late since 2000-01-01 00:35 UTC."
		p.wantTold(t, late, back)
		beat(t, h, http.MethodPost, "/notify/k?beat=nightly", "", http.StatusOK)
		until(t, "2000-01-01 02:25:30")
		p.wantTold(t, late, back, "failure: nightly is late | The last beat came at 2000-01-01 02:00 UTC. One is expected every 20m, with a grace of 5m.")
	})
}

// TestFailingBeat checks that a beat with the type failure is told at once with its text,
// in each format, and that its success is told.
func TestFailingBeat(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, expectNightly))
		var want []string
		tell := func(texts ...string) {
			t.Helper()
			time.Sleep(time.Second)
			want = append(want, texts...)
			p.wantTold(t, want...)
		}
		beat(t, h, http.MethodGet, "/notify/k?beat=nightly&type=failure", "", http.StatusOK)
		tell("failure: nightly has failed | The beat came with the type failure.")
		if got := post(t, h, "/notify/k?beat=nightly", typeJSON, `{"type": "failure", "title": "backup", "body": "disk full"}`); got.status != http.StatusOK || got.json(t).Error != nil {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		tell("failure: backup | disk full")
		if got := post(t, h, "/notify/k?beat=nightly&:state=type&:log.text=body", typeJSON, `{"state": "critical", "log": {"text": "no space"}}`); got.status != http.StatusOK {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		tell("failure: nightly has failed | no space")
		if got := post(t, h, "/notify/k?beat=nightly&type=failure", "text/plain", "tape missing"); got.status != http.StatusOK {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		tell("failure: nightly has failed | tape missing")
		if got := post(t, h, "/notify/k/grafana?beat=nightly", typeJSON, `{"status":"firing"}`); got.status != http.StatusBadRequest {
			t.Errorf("a payload of no source: status %d: %s", got.status, got.body)
		}
		if got := post(t, h, "/notify/k/ntfy?beat=nightly", typeJSON, `{"topic": "t", "message": "all is well"}`); got.status != http.StatusOK {
			t.Errorf("ntfy: status %d: %s", got.status, got.body)
		}
		tell("success: nightly is back | The beat has come. It failed at " + time.Now().Add(-2*time.Second).Format("2006-01-02 15:04") + " UTC.")
	})
}

// TestBeatRefused checks who cannot send a beat, and that such a request changes nothing.
func TestBeatRefused(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, expectNightly, "token 0123456789abcdef")+"\nkey open {\nurl "+p.NotifyURL()+"\naccept grafana\nexpect nightly every 1d\n}")
		const token = "&token=0123456789abcdef"
		beat(t, h, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusUnauthorized)
		beat(t, h, http.MethodGet, "/notify/k?beat=weekly"+token, "", http.StatusNotFound)
		beat(t, h, http.MethodHead, "/notify/k?beat=nightly"+token, "", http.StatusMethodNotAllowed)
		beat(t, h, http.MethodPost, "/notify?beat=nightly", "", http.StatusBadRequest)
		beat(t, h, http.MethodPost, "/notify/k?beat=nightly&type=bad"+token, "", http.StatusBadRequest)
		beat(t, h, http.MethodGet, "/notify/open?beat=nightly", "", http.StatusForbidden)
		r := httptest.NewRequest(http.MethodGet, "/notify/k?beat=nightly"+token, nil)
		r.Header.Set("Sec-Fetch-Site", "cross-site")
		if got := do(t, h, r); got.status != http.StatusForbidden {
			t.Errorf("another origin: status %d: %s", got.status, got.body)
		}
		until(t, "2000-01-01 00:25:10")
		late := "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m."
		p.wantTold(t, late)
		r = httptest.NewRequest(http.MethodGet, "/notify/k?beat=nightly", nil)
		r.Header.Set("Authorization", "Bearer 0123456789abcdef")
		if got := do(t, h, r); got.status != http.StatusOK {
			t.Errorf("status %d: %s", got.status, got.body)
		}
		time.Sleep(time.Second)
		p.wantTold(t, late, "success: nightly is back | The beat has come. It was late since 2000-01-01 00:25 UTC.")
	})
}

// TestBeatAfterDowntime checks that a gateway that was off tells nothing of beats that
// could not come, and tells one that does not come afterwards.
func TestBeatAfterDowntime(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := ruledKey(p, expectNightly)
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		until(t, "2000-01-01 00:10:00")
		beat(t, h, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		until(t, "2000-01-01 00:20:00")
		stopApp(t, h)
		until(t, "2000-01-03 00:20:00") // off for 48 h, by which the deadline of 00:35 moves, and by 5 m
		newQueueGateway(t, dir, "", key)
		until(t, "2000-01-03 00:39:00")
		p.wantTold(t)
		until(t, "2000-01-03 00:41:00")
		p.wantTold(t, "failure: nightly is late | The last beat came at 2000-01-01 00:10 UTC. One is expected every 20m, with a grace of 5m.")
	})
}

// TestBeatAndRules checks that what is told of a beat passes the rules of the key and goes
// to the URLs of its tag.
func TestBeatAndRules(t *testing.T) {
	t.Parallel()
	p, other := newPager(t, http.StatusOK), newPager(t, http.StatusOK)
	dir := t.TempDir()
	key := "key k {\nurl " + p.NotifyURL() + "?tz=UTC phone\nurl " + other.NotifyURL() + "\n" + `quiet 23:00-01:00 UTC {
		types failure success
	}
	expect nightly every 20m grace 5m {
		tag phone
	}
	}`
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", key)
		until(t, "2000-01-01 00:59:00")
		p.wantTold(t)
		until(t, "2000-01-01 01:00:10")
		p.wantTold(t, "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m.")
		beat(t, h, http.MethodGet, "/notify/k?beat=nightly", "", http.StatusOK)
		time.Sleep(time.Second)
		other.wantTold(t)
		if n := len(p.toldTitles()); n != 2 {
			t.Errorf("%d messages", n)
		}
	})
}

// TestBeatReload checks that an expectation that has not changed keeps its deadline over
// a reload, and that one that is gone is told as such if it was late.
func TestBeatReload(t *testing.T) {
	t.Parallel()
	p := newPager(t, http.StatusOK)
	dir := t.TempDir()
	inBubble(t, func(t *testing.T) {
		h := newQueueGateway(t, dir, "", ruledKey(p, expectNightly))
		until(t, "2000-01-01 00:20:00")
		h2 := newQueueGateway(t, dir, "", ruledKey(p, expectNightly, "dedupe 1m"))
		stopApp(t, h)
		until(t, "2000-01-01 00:25:10")
		late := "failure: nightly is late | No beat has come yet. One is expected every 20m, with a grace of 5m."
		p.wantTold(t, late)
		newQueueGateway(t, dir, "", ruledKey(p))
		stopApp(t, h2)
		time.Sleep(25 * time.Minute)
		p.wantTold(t, late, "success: nightly is no longer expected | The configuration does not expect this beat any more, so nobody waits for it.")
		time.Sleep(15 * time.Minute)
		p.wantTold(t, late, "success: nightly is no longer expected | The configuration does not expect this beat any more, so nobody waits for it.")
	})
}
