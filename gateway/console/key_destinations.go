package console

import (
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/console/view"
	"github.com/caddy-notify/caddy-notify/gateway/httpapi"
	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// keyTests sends test messages to the destinations of a key.
type keyTests struct {
	*shared
	page    *keyPages
	builder *builder
}

// pageDestinations returns the destinations of a key. address is the address of its page.
func pageDestinations(address string, targets []notifier.Target) []view.Destination {
	out := make([]view.Destination, len(targets))
	for i, t := range targets {
		number, url := strconv.Itoa(i+1), t.String()
		out[i] = view.Destination{
			Number: i + 1, Named: named(t.Service(), url), URL: url, Tags: strings.Join(t.Tags, ", "), Address: address,
			Fields: []view.HiddenField{{Name: "destination", Value: number}, {Name: "shown", Value: url}},
			Label:  "Test " + t.Name(),
		}
	}
	return out
}

// testQuery is the query parameter of a POST to the address of a key that tests one destination.
const testQuery = "test"

// MaxPageForm bounds the body of a page's form, in bytes. A URL has at most 64 KiB, and a form
// encodes a character in up to three bytes.
const MaxPageForm = 512 << 10

// readPageForm reads a page's form for clients that may manage. Its fields are in r.PostForm.
func (h *shared) readPageForm(w http.ResponseWriter, r *http.Request) error {
	if !h.Resolved.Page {
		return errPageOff
	}
	if err := api.LimitBody(w, r, MaxPageForm); err != nil {
		return err
	}
	if err := r.ParseForm(); err != nil {
		return api.BodyError(err)
	}
	return nil
}

var errPageOff = api.Errorf(http.StatusForbidden, "this is part of the pages, which are turned off here")

// serveTest sends a test message to one destination of a key. The field destination is its number,
// counted from 1. A browser gets the page of the key with the result, and any other client the
// response to a message.
func (h *keyTests) serveTest(w http.ResponseWriter, r *http.Request, name string) error {
	e, err := h.api.Sender.Enter(r, true)
	if err != nil {
		return err
	}
	defer e.Leave()
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	if r.PostForm.Has("url") {
		return h.builder.testURL(w, r, name)
	}
	k, err := h.Resolved.Key(r.Context(), name)
	if err != nil {
		return err
	}
	if r.PostForm.Get("destination") == allDestinations {
		return h.testAll(w, r, k)
	}
	n, err := testedTarget(k, r)
	if err != nil {
		return err
	}
	resp, err := h.api.Sender.SendTest(w, r, k, &message.Selection{Targets: k.Targets[n : n+1]})
	if err != nil {
		return err
	}
	if !api.PrefersHTML(r) {
		resp.Write(w, r)
		return nil
	}
	p, err := h.page.keyPage(r, name)
	if err != nil {
		return err
	}
	if n < len(p.Destinations) {
		p.Destinations[n].Status, p.Destinations[n].Result = testResult(resp.Results[0])
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// allDestinations in the field destination means all of them.
const allDestinations = "all"

// maxTestsAtOnce is how many destinations of a key are tested at once.
const maxTestsAtOnce = 8

// testAll sends a test message to each destination of a key.
func (h *keyTests) testAll(w http.ResponseWriter, r *http.Request, k *site.Key) error {
	results := make([]notifier.Result, len(k.Targets))
	slots := make(chan struct{}, maxTestsAtOnce)
	var wg sync.WaitGroup
	for i, t := range k.Targets {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			d, err := h.api.Sender.TestDelivery(k, &message.Selection{Targets: k.Targets[i : i+1]})
			if err != nil {
				results[i] = notifier.Result{
					Service: t.Service(), Destination: t.String(), Name: t.Destination.Name(), Tags: t.Tags,
					Status: notifier.Failed, Err: err,
				}
				return
			}
			results[i] = h.App.SendTest(r.Context(), k, d).Results[0]
		})
	}
	wg.Wait()
	if !api.PrefersHTML(r) {
		out := make([]message.Result, len(results))
		for i := range results {
			out[i] = message.NewResult(results[i])
		}
		return httpapi.WriteJSON(w, http.StatusOK, map[string][]message.Result{"results": out})
	}
	p, err := h.page.keyPage(r, k.Name)
	if err != nil {
		return err
	}
	for i := range min(len(p.Destinations), len(results)) {
		p.Destinations[i].Status, p.Destinations[i].Result = testResult(results[i])
	}
	return h.WritePage(w, r, http.StatusOK, httpapi.RouteConsoleKeys, p)
}

// testedTarget returns the index of the destination in the form of r. The field shown, if set, is
// its URL as the page showed it.
func testedTarget(k *site.Key, r *http.Request) (n int, err error) {
	n, err = strconv.Atoi(r.PostForm.Get("destination"))
	if err != nil || n < 1 || n > len(k.Targets) {
		return 0, api.Errorf(http.StatusBadRequest, "the field destination must be the number of a destination, from 1 to %d", len(k.Targets))
	}
	if shown := r.PostForm.Get("shown"); shown != "" && shown != k.Targets[n-1].String() {
		return 0, api.Errorf(http.StatusConflict, "the key has changed since the page was loaded; load it again")
	}
	return n - 1, nil
}

// testResult returns the result of a test for the page.
func testResult(r notifier.Result) (status, text string) {
	status = string(r.Status)
	switch {
	case r.Err != nil:
		return string(notifier.Failed), "Failed: " + r.Err.Error() + "."
	case r.Status != notifier.Delivered:
		return status, "Nothing to send."
	case r.Elapsed < time.Second:
		return status, fmt.Sprintf("Delivered in %d ms.", r.Elapsed.Milliseconds())
	}
	return status, fmt.Sprintf("Delivered in %.1f s.", r.Elapsed.Seconds())
}
