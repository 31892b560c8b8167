package console_test

import (
	"html"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/caddy-notify/caddy-notify/gateway/gatewaytest"
	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

// TestNightFirst checks what comes first in the worst night: on Now and in the list of incidents
// those that are about to wake somebody, equal ones as one row, and those that are silent last; and
// destinations that are down before those that fail, each under their heading and with their tags.
func TestNightFirst(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		for address, want := range map[string][]string{
			"": {
				"Payments fail duty · open for 2 min ntfy ann (1:oncall) told 02:33 now ntfy bob (2:oncall) 02:38 , in 3 min " +
					"ntfy boss (3:oncall) 02:52 ntfy ann (1:oncall) 03:06 round 2 of 3 Acknowledge Silence",
				"The shop is down", "ntfy bob (2:oncall) told 02:32 now ntfy boss (3:oncall) 02:46 , in 11 min",
				"many: 200 open , newest 8 min ago Disk full on web-200, Disk full on web-199 and 198 more Show 20 of them",
				"and 180 more Acknowledge all Silence all", "The lab is hot", "The attic is wet",
				"Down Queue N ntfy phone-07 eu everyone Down for 35 min", "N ntfy phone-13 eu everyone", "Failing Queue N ntfy phone-17 eu everyone",
			},
			"/incidents": {
				"Payments fail", "The shop is down", "many: 200 open failure newest", "Disk full on web-200, Disk full on web-199 and 198 more",
				"Acknowledge all Silence all", "The lab is hot", "The attic is wet",
			},
			"/queue":                         {"Down N ntfy phone-07 eu", "N ntfy phone-13 eu everyone", "Failing N ntfy phone-17 eu everyone"},
			"/keys/everyone":                 {"ntfy phone-07 eu Down", "ntfy phone-13 eu Down", "ntfy phone-17 eu Failing", "ntfy phone-01 eu"},
			"/incidents?key=many&state=open": {"Disk full on web-200", "Disk full on web-151", "More"},
		} {
			wantTexts(t, n.Gateway, "/notify/console"+address, want...)
		}
		if body := get(n.Gateway, "/notify/console", browser).Body; !strings.Contains(body,
			`<a href="../notify/console/incidents?key=many&amp;state=open">and 180 more</a>`) || strings.Contains(body, "<script src") {
			t.Errorf("the row has no link to all: %s", plain(body))
		}
		if text := plain(get(n.Gateway, "/notify/console/incidents?key=many", browser).Body); strings.Contains(text, "200 open") {
			t.Errorf("the list of a key folds its incidents: %s", text)
		}
	})
}

// TestEqualButtons checks that the buttons of equal incidents acknowledge those that the page has
// shown, and silence those whose titles begin alike.
func TestEqualButtons(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		body := get(n.Gateway, "/notify/console", browser).Body
		ids := regexp.MustCompile(`name="id" value="([^"]* [^"]*)"`).FindStringSubmatch(body)
		if ids == nil {
			t.Fatalf("there is no form for all: %s", body)
		}
		if !strings.Contains(body, `silences?key=many&amp;title=Disk&#43;full&#43;on&#43;web-#silence" aria-label="Silence all 200 of many"`) &&
			!strings.Contains(body, `silences?key=many&amp;title=Disk+full+on+web-#silence" aria-label="Silence all 200 of many"`) {
			t.Errorf("the button silences something else: %s", body)
		}
		n.PostForm("/notify/many", "title=Disk+full+on+web-201&body=b&type=failure&incident=web-201") // after the page was loaded
		synctest.Wait()
		r := submit(n.Gateway, "/notify/console?acknowledge", url.Values{"id": {ids[1]}})
		if at := r.Header.Get("Location"); r.Status != http.StatusSeeOther || at != "../notify/console?count=200&done=acknowledge" {
			t.Fatalf("%d, %q: %s", r.Status, at, r.Body)
		}
		wantTexts(t, n.Gateway, "/notify/console?count=200&done=acknowledge", "You take care of 200 incidents. Nobody else is told.",
			"Payments fail", "The shop is down", "Disk full on web-201", "The lab is hot", "many: 200 acknowledged")
		r = submit(n.Gateway, "/notify/console?acknowledge", url.Values{"id": {ids[1]}})
		if at := r.Header.Get("Location"); at != "../notify/console?done=over" {
			t.Errorf("a second time: %d, %q", r.Status, at)
		}
	})
}

// TestNightSilences checks that no page says when a step begins of which a silence tells nobody, and
// that a page says so of a step that does begin.
func TestNightSilences(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		// The silence of duty is made while steps wait.
		n.AddSilence("duty", "for=2h&incident=shop&reason=known&who=Ann")
		lists := []string{
			"", "/incidents", "/incidents?key=duty", "/messages", "/messages?key=duty", "/keys/duty", "/keys/duty?tab=messages", "/keys/lab",
			"/keys/lab?tab=messages",
		}
		for _, x := range n.ListIncidents("duty") {
			lists = append(lists, "/incidents/"+x.ID)
		}
		for _, m := range regexp.MustCompile(`href="\.\./\.\./notify/console(/messages/[0-9a-f-]{36})"`).
			FindAllStringSubmatch(get(n.Gateway, "/notify/console/messages?key=duty", browser).Body, -1) {
			lists = append(lists, m[1])
		}
		if len(lists) < 13 {
			t.Fatalf("there are no pages of messages: %q", lists)
		}
		for _, address := range lists {
			r := get(n.Gateway, "/notify/console"+address, browser)
			if r.Status != http.StatusOK || strings.Contains(plain(r.Body), "02:46") { // the next step about the shop
				t.Errorf("%s says when a step begins that a silence keeps back: %d %s", address, r.Status, plain(r.Body))
			}
		}
		wantTexts(t, n.Gateway, "/notify/console", "Payments fail", "ntfy bob (2:oncall) 02:38 , in 3 min", "The shop is down",
			"ntfy bob (2:oncall) told 02:32 silent since 02:35 now silence ends 04:35 ntfy ann (1:oncall) 04:35 if it is still open")
		wantTexts(t, n.Gateway, "/notify/console/messages?key=duty", "Delivered; ntfy bob (2:oncall) 1 Jan 2000, 02:38",
			"Delivered; silent for ntfy boss (3:oncall), ntfy ann (1:oncall), ntfy bob (2:oncall) until 1 Jan 2000, 04:35")
	})
}

// TestNightMessages checks what the lines of messages say in the worst night: how many destinations
// have a message, what became of a question, and the titles of planned messages.
func TestNightMessages(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		wantTexts(t, n.Gateway, "/notify/console/messages?key=everyone", "Storm warning 1", "17 of 20 delivered; failed: ntfy phone-17 (eu); "+
			"waiting for ntfy phone-07 (eu), ntfy phone-13 (eu)")
		wantTexts(t, n.Gateway, "/notify/console/messages?key=approvals",
			"Restart db1?", "Answered “yes” by Ann", "Reboot web-1?", "Nobody has answered in time, so “no” is taken",
			"Open the gate?", "Asked, no answer yet; ends 1 Jan 2000, 06:00 UTC",
			"Deploy 1.4?", "Asked, no answer yet; ends 1 Jan 2000, 06:00 UTC")
		wantTexts(t, n.Gateway, "/notify/console/messages?key=family", "Planned", "Take out the bins family · 1 Jan 2000, 04:00 UTC",
			"Holiday in 3 days family · 1 Jan 2000, 10:00 UTC")
		planned := regexp.MustCompile(`href="\.\./\.\.(/notify/console/messages/[0-9a-f-]{36})">Take out`).
			FindStringSubmatch(get(n.Gateway, "/notify/console/messages?key=family", browser).Body)
		if planned == nil || !strings.Contains(get(n.Gateway, planned[1], browser).Body, "<h1>Take out the bins</h1>") {
			t.Errorf("the page of a planned message has no title: %q", planned)
		}
	})
}

// TestNightQuestions checks that Now has the open questions, and that the page of a question has its
// options, and withdraws it.
func TestNightQuestions(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		wantTexts(t, n.Gateway, "/notify/console", "2 questions wait for an answer", "Questions",
			"Deploy 1.4? approvals · no answer yet, ends in 4 h (06:00 UTC) · if nobody answers, “no” is taken",
			"Open the gate? approvals · no answer yet, ends in 4 h (06:00 UTC) · if nobody answers, nothing is decided")
		at := regexp.MustCompile(`href="\.\.(/notify/console/messages/[0-9a-f-]{36})">Deploy`).
			FindStringSubmatch(get(n.Gateway, "/notify/console", browser).Body)
		if at == nil {
			t.Fatal("the question has no link")
		}
		wantTexts(t, n.Gateway, at[1], "Deploy 1.4?", "Asked, no answer yet; ends 1 Jan 2000, 06:00 UTC", "Question Withdraw",
			"Answers yes, no",
			"Asked ntfy ann (1:oncall), ntfy bob (2:oncall)", "If nobody answers “no” is taken", "Deliveries")
		if r := submit(n.Gateway, at[1]+"?withdraw", nil); r.Status != http.StatusSeeOther {
			t.Fatalf("withdrawing answers %d %s", r.Status, r.Body)
		}
		wantTexts(t, n.Gateway, at[1], "Withdrawn", "Outcome The question was withdrawn", "Deliveries")
		wantTexts(t, n.Gateway, "/notify/console", "1 question waits for an answer", "Open the gate?")
	})
}

// TestNightKeys checks that the state of a key shows its open incidents and its silences.
func TestNightKeys(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		for key, want := range map[string][]string{
			"many": {"Open incidents", "200 open , newest 1 Jan 2000, 02:26", "Disk full on web-200, Disk full on web-199 and 198 more"},
			"duty": {"Open incidents", "Payments fail", "ntfy bob (2:oncall) 02:38 , in 3 min", "The shop is down", "Destinations"},
			"lab": {
				"The lab is hot", "silent since 02:00 now silence ends 08:00 ntfy ann (1:oncall) 08:00", "Silences",
				"Silent until 1 Jan 2000, 08:00", "oven", "by Ann",
			},
			"attic": {"The attic is wet", "silenced until 1 Jan 2000, 06:00 UTC", "Silences", "The attic", "the roofer comes", "by Bob"},
		} {
			wantTexts(t, n.Gateway, "/notify/console/keys/"+key, want...)
		}
		if text := plain(get(n.Gateway, "/notify/console/keys/host-01", browser).Body); strings.Contains(text, "Open incidents") ||
			strings.Contains(text, "Silences") {
			t.Errorf("a key in peace: %s", text)
		}
	})
}

// TestNightCounts checks that the sentence and the badge count the incidents of which somebody is told, and
// that the sentence names those that silences keep from everybody apart.
func TestNightCounts(t *testing.T) {
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		want := func(sentence, counted string) {
			t.Helper()
			gotSentence, gotCount := situation(t, get(n.Gateway, "/notify/console", browser).Body)
			if !strings.HasPrefix(gotSentence, sentence) || !strings.HasPrefix(gotCount, counted) {
				t.Errorf("the situation is %q with the count %q; want %q, %q", gotSentence, gotCount, sentence, counted)
			}
		}
		want("failing: 202 incidents open, 2 more silenced, 2 destinations down", "208 202 incidents open, 2 more silenced, ")
		n.AddSilence("many", "for=2h&tag=all&reason=known&who=Ann")
		want("failing: 2 incidents open, 202 more silenced, 2 destinations down", "8 2 incidents open, 202 more silenced, ")
		n.AddSilence("duty", "for=2h&tag=all&reason=known&who=Ann")
		want("failing: 2 destinations down, 1 destination failing, 3 beats late or failed, 204 incidents silenced", "6 2 destinations down")
		if text := plain(get(n.Gateway, "/notify/console", browser).Body); !strings.Contains(text, "many: 200 open") {
			t.Errorf("silenced incidents are not listed: %s", text)
		}
	})
}

var (
	hrefOf    = regexp.MustCompile(`href="([^"#]+)`)
	hiddenOf  = regexp.MustCompile(`(?s)<script.*?</script>|<style.*?</style>|(?:datetime|href|action|data-[a-z]+)="[^"]*"`)
	rawTimeOf = regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d`)
	partsOf   = regexp.MustCompile(`[0-9a-f-]{36}|[a-z2-7]{26,}|keys/[\w-]+|=[^&]*`)
)

// TestTimesOfPages goes from the first page over the links of the worst night, and checks that each time that
// a reader sees without a script has words and a zone. The attribute datetime is for programs.
func TestTimesOfPages(t *testing.T) {
	racetest.SkipIfSlow(t)
	gatewaytest.InNight(t, func(t *testing.T, n *gatewaytest.Night) {
		n.AddSilence("duty", "for=2h&incident=shop&reason=known&who=Ann")
		kinds, seen := map[string]int{}, map[string]bool{}
		for queue := []string{"/notify/console", "/notify/console/silences?key=many&title=Disk"}; len(queue) > 0; queue = queue[1:] {
			at, kind := queue[0], partsOf.ReplaceAllString(queue[0], "*")
			if kinds[kind]++; seen[at] || kinds[kind] > 3 {
				continue
			}
			seen[at] = true
			body := get(n.Gateway, at, browser).Body
			if raw := rawTimeOf.FindString(hiddenOf.ReplaceAllString(body, "")); raw != "" {
				t.Errorf("%s shows %s", at, raw)
			}
			here, err := url.Parse(at)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range hrefOf.FindAllStringSubmatch(body, -1) {
				to, err := here.Parse(html.UnescapeString(m[1]))
				if err == nil && to.Host == "" && strings.HasPrefix(to.Path, "/notify/") {
					queue = append(queue, to.String())
				}
			}
		}
		if len(kinds) < 20 || len(seen) < 30 {
			t.Errorf("only %d pages of %d kinds were found", len(seen), len(kinds))
		}
	})
}
