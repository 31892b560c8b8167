package caddyhttp

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// notify is the way of one message: it reads the request, chooses the
// destinations, sends, and tells what became of it.
func (h *Handler) notify(w http.ResponseWriter, r *http.Request, name string, stateful bool) *answer {
	if !h.engine.traffic.enter(h.rules.maxInFlight) {
		h.engine.metrics.notSent(http.StatusServiceUnavailable)
		return overloaded(w).answer()
	}
	defer h.engine.traffic.leave()
	spool := &notifier.Spool{MaxSize: h.rules.maxSize, MaxCount: h.rules.maxCount}
	defer spool.Close() // behind Send, which returns when nobody needs the files any more
	a, err := h.deliver(w, r, name, stateful, spool)
	if err != nil {
		a = h.failure(err)
		h.engine.metrics.notSent(a.status)
	}
	if h.rules.page {
		a.page = ownAddress(r)
	}
	return a
}

// open says whether messages may be sent here at all.
func (h *Handler) open(name string, stateful bool) error {
	switch {
	case stateful && h.rules.keys[name] == nil:
		return refuse(http.StatusNotFound, "there is no such key")
	case !stateful && !h.rules.stateless:
		return refuse(http.StatusForbidden, "messages without a key are turned off here; post to /notify/{KEY}")
	}
	return nil
}

func (h *Handler) deliver(w http.ResponseWriter, r *http.Request, name string, stateful bool, spool *notifier.Spool) (*answer, error) {
	if err := h.open(name, stateful); err != nil {
		return nil, err
	}
	if err := h.rules.checkOrigin(r); err != nil {
		return nil, err
	}
	hops, err := hops(r)
	if err != nil {
		return nil, err
	}
	q, err := readRequest(w, r, h.rules, spool)
	if err != nil {
		return nil, err
	}
	m, err := q.message()
	if err != nil {
		return nil, err
	}
	m.Hops, m.Identity, m.Time = hops, h.rules.identity, time.Now()

	var to selection
	log := h.log
	if stateful {
		k := h.rules.keys[name]
		if to, err = q.tagged(name, k); err != nil {
			return nil, err
		}
		log = k.log
	} else if to, err = h.addressed(q); err != nil {
		return nil, err
	}
	defer to.close()
	if err := to.bear(m); err != nil {
		return nil, err
	}

	// Last, since it is the only check that takes long.
	if m.Attachments, err = q.attach(r.Context(), h.engine.sender.Pool()); err != nil {
		return nil, err
	}
	q.close()
	o := h.rules.options(log)
	o.Transient = to.brought
	live := newStream(w, r, to.targets, &o)
	report := h.engine.send(r.Context(), m, to, o, origin{sourceHTTP, name})
	a := to.answer(report)
	a.live = live
	return a, nil
}

// maxHops is how many gateways a message may have passed through.
const maxHops = 1

// hops reads how many gateways the message has passed through, as gateways
// tell each other so that none sends in circles. Ours say it in every request,
// whatever the service.
func hops(r *http.Request) (int, error) {
	ours := notifier.HopsOf(r.UserAgent(), userAgent) + 1
	values := r.Header.Values("X-Apprise-Recursion-Count")
	if len(values) == 0 {
		values = []string{"0"}
	}
	text := strings.TrimSpace(values[0])
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, refuse(http.StatusBadRequest, "the header X-Apprise-Recursion-Count must be a whole number, 0 or more")
	}
	n, err := strconv.Atoi(text)
	if n = max(n, ours); err != nil || n > maxHops { // an error means that the number is too large for an int
		return 0, refuse(http.StatusLoopDetected, "the message has passed through too many gateways (more than %d; X-Apprise-Recursion-Count)", maxHops)
	}
	return n, nil
}

// selection is who a message goes to, and which of the URLs that a client
// brought could not be used.
type selection struct {
	targets  []notifier.Target
	brought  bool                    // the targets are of the client's URLs, for this request alone
	unused   map[int]notifier.Result // by the place among all
	warnings []notifier.Record
}

// close ends what the destinations keep that a client has brought.
func (s selection) close() {
	if !s.brought {
		return
	}
	for _, t := range s.targets {
		t.Close()
	}
}

// maxBurden is how much text one request may make the gateway hold: that of
// the message, once for each URL that the client brings.
const maxBurden = 64 << 20

// bear refuses a message that is too long for so many destinations of a
// client.
func (s selection) bear(m *notifier.Message) error {
	if n := len(s.targets); s.brought && (len(m.Title)+len(m.Body))*n > maxBurden {
		return refuse(http.StatusRequestEntityTooLarge, "the message is too long for %d URLs; to so many it may have %s", n, size(int64(maxBurden/n)))
	}
	return nil
}

// tagged chooses among the destinations of a key.
func (q *request) tagged(name string, k *key) (selection, error) {
	e, err := q.tags()
	if err != nil {
		return selection{}, err
	}
	// Of no use here, but a field of the wrong type is wrong all the same.
	if _, err := q.urls(); err != nil {
		return selection{}, err
	}
	targets := k.choose(e)
	if len(targets) == 0 {
		return selection{}, refuse(http.StatusFailedDependency, "none of the %d destinations of the key %s has the tag that was asked for, so nothing was sent", len(k.targets), name)
	}
	return selection{targets: targets}, nil
}

// maxSuggestions is for how many URLs of one request it is looked up what may
// have been meant, which takes a while.
const maxSuggestions = 5

// addressed takes the destinations that the request brings, or else those
// that the operator has named for such requests.
func (h *Handler) addressed(q *request) (selection, error) {
	urls, err := q.urls()
	if err != nil {
		return selection{}, err
	}
	if err := q.checkTags(); err != nil {
		return selection{}, err
	}
	if len(urls) == 0 {
		if len(h.rules.defaults) == 0 {
			return selection{}, refuse(http.StatusBadRequest, "the field urls is missing; it takes the notification URLs to send to")
		}
		return selection{targets: h.rules.defaults}, nil
	}
	s := selection{brought: true, unused: map[int]notifier.Result{}}
	var first error
	for i, text := range urls {
		d, err := h.engine.sender.ParseOnce(text, h.rules.egress)
		if err == nil {
			err = h.rules.services.permit(d)
		}
		if err == nil {
			s.targets = append(s.targets, notifier.Target{Destination: d})
			for _, w := range d.Warnings() {
				s.warnings = append(s.warnings, notifier.Record{Time: time.Now(), Level: notifier.LevelWarning, Text: fmt.Sprintf("URL %d of %d: %s", i+1, len(urls), w)})
			}
			continue
		}
		if len(s.unused) < maxSuggestions {
			err = suggest(text, err)
		}
		s.unused[i] = unused(text, fmt.Errorf("URL %d of %d: %w", i+1, len(urls), err))
		if first == nil {
			first = s.unused[i].Err
		}
	}
	if len(s.targets) == 0 {
		e := refuse(http.StatusBadRequest, "no usable URL among urls, so nothing was sent; %v", first)
		e.results = s.results(nil)
		return selection{}, e
	}
	return s, nil
}

// unused is the result of a URL that means no destination. Nothing of it is
// shown but the schema, and that only if it is a service's.
func unused(text string, err error) notifier.Result {
	r := notifier.Result{Status: notifier.Skipped, Err: err}
	if scheme, _, ok := strings.Cut(text, "://"); ok && notifier.SchemesOf(scheme) != nil {
		r.Destination = strings.ToLower(scheme) + "://"
	}
	return r
}

// results puts the URLs that were not used in their places among the results.
func (s selection) results(sent []notifier.Result) []notifier.Result {
	if len(s.unused) == 0 {
		return sent
	}
	out := make([]notifier.Result, 0, len(sent)+len(s.unused))
	for len(out) < cap(out) {
		if r, ok := s.unused[len(out)]; ok {
			out = append(out, r)
			continue
		}
		out, sent = append(out, sent[0]), sent[1:]
	}
	return out
}

// answer tells the client what became of the message.
func (s selection) answer(report *notifier.Report) *answer {
	a := &answer{status: http.StatusOK, records: append(s.warnings, report.Records...), results: s.results(report.Results)}
	failed := 0
	for _, r := range a.results {
		if !r.OK() {
			failed++
		}
		if r.Status == notifier.Skipped && r.Err != nil {
			a.records = append(a.records, notifier.Record{Time: time.Now(), Level: notifier.LevelError, Text: "Not sent: " + r.Err.Error()})
		}
	}
	if failed > 0 {
		a.status = http.StatusFailedDependency
		a.err = fmt.Sprintf("%d of %d notifications could not be sent", failed, len(a.results))
	}
	return a
}

// failure makes an answer of an error: a refusal, or else a fault of the
// gateway's own.
func (h *Handler) failure(err error) *answer {
	if e, ok := asRefusal(err); ok {
		return e.answer()
	}
	h.log.Error("request failed", zap.Error(err))
	return refuse(http.StatusInternalServerError, "the gateway could not handle the request; its log says why").answer()
}
