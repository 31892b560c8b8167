package caddyhttp

import (
	_ "embed"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/api"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var (
	//go:embed page_config_destination.html
	destinationHTML string
	//go:embed page_config_destinations.js
	destinationsJS string
)

// pageTarget is a destination with a button that tests it, as the template
// destination shows it.
type pageTarget struct {
	Number             int    // from 1 on
	Service, URL, Tags string // the URL has its secrets masked
	Address            string // of the page of the key
	Fields             []pageField
	Label              string          // of the button, for screen readers
	Status             notifier.Status // of a test; "" without one
	Result             string          // of the test, a sentence
}

// pageField is a hidden field of the form that tests a destination.
type pageField struct{ Name, Value string }

// pageTargets returns the destinations of a key. address is that of its page.
func pageTargets(address string, targets []notifier.Target) []pageTarget {
	out := make([]pageTarget, len(targets))
	for i, t := range targets {
		number, url := i+1, t.String()
		out[i] = pageTarget{
			Number: number, Service: t.Service(), URL: url, Tags: strings.Join(t.Tags, ", "), Address: address,
			Fields: []pageField{{"destination", strconv.Itoa(number)}, {"shown", url}},
			Label:  fmt.Sprintf("Test destination %d, %s", number, t.Service()),
		}
	}
	return out
}

// testQuery is the name in the query string of a POST to the address of a key
// that tests one destination.
const testQuery = "test"

// maxPageForm bounds the body of a form of the pages, in bytes. A URL has at
// most 64 KiB, and a form writes a character with up to three bytes.
const maxPageForm = 512 << 10

// readPageForm reads a form of the pages for those who manage. Its fields are
// in r.PostForm.
func (h *Handler) readPageForm(w http.ResponseWriter, r *http.Request) error {
	if !h.resolved.page {
		return errPageOff
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxPageForm)
	if err := r.ParseForm(); err != nil {
		return api.BodyError(err)
	}
	return nil
}

var errPageOff = api.Errorf(http.StatusForbidden, "this is part of the pages, which are turned off here")

// serveTest sends a test message to one destination of a key. The field
// destination is its number, counted from 1. A browser gets the page of the key
// with the result. Any other client gets the response to a message.
func (h *Handler) serveTest(w http.ResponseWriter, r *http.Request, name string) error {
	e, err := h.enter(r, name)
	if err != nil {
		return err
	}
	defer e.leave()
	if err := h.readPageForm(w, r); err != nil {
		return err
	}
	if r.PostForm.Has("url") {
		return h.testURL(w, r, name)
	}
	k, err := h.resolved.key(r.Context(), name)
	if err != nil {
		return err
	}
	n, err := k.tested(r)
	if err != nil {
		return err
	}
	resp, err := h.sendTest(w, r, k, k.targets[n])
	if err != nil {
		return err
	}
	if !api.PrefersHTML(r) {
		resp.Write(w, r)
		return nil
	}
	p, err := h.keyPage(r, name)
	if err != nil {
		return err
	}
	if n < len(p.Targets) {
		p.Targets[n].Status, p.Targets[n].Result = testResult(resp.Results[0])
	}
	return writeConfigPage(w, r, http.StatusOK, pageConfigTemplate(), p)
}

// tested returns the index of the destination that the form in r is about. The
// field shown, if set, is its URL as the page showed it.
func (k *key) tested(r *http.Request) (n int, err error) {
	n, err = strconv.Atoi(r.PostForm.Get("destination"))
	if err != nil || n < 1 || n > len(k.targets) {
		return 0, api.Errorf(http.StatusBadRequest, "the field destination must be the number of a destination, from 1 to %d", len(k.targets))
	}
	if shown := r.PostForm.Get("shown"); shown != "" && shown != k.targets[n-1].String() {
		return 0, api.Errorf(http.StatusConflict, "the key has changed since the page was loaded; load it again")
	}
	return n - 1, nil
}

// sendTest sends a test message to one target under the rules of its key. It
// does not use the queue, so that the result is that of one attempt.
func (h *Handler) sendTest(w http.ResponseWriter, r *http.Request, k *key, t notifier.Target) (*api.Response, error) {
	m := &notifier.Message{
		Title: "Test from " + h.resolved.identity.Name, Body: "If you can read this, a destination of the key " + k.name + " works.",
		Type: notifier.Info, Identity: h.resolved.identity, Time: time.Now(),
	}
	to := &api.Selection{Targets: []notifier.Target{t}, Limits: k.limits}
	if err := to.Check(m); err != nil {
		return nil, err
	}
	d := delivery{message: m, to: to, settings: h.resolved, logger: k.log, source: sourceTest, key: k.name}
	stream := d.stream(w, r)
	resp := api.NewResponse(h.shared.send(r.Context(), d))
	resp.Stream = stream
	return resp, nil
}

// testResult returns the result of a test for the page.
func testResult(r notifier.Result) (notifier.Status, string) {
	switch {
	case r.Err != nil:
		return notifier.Failed, "Failed: " + r.Err.Error() + "."
	case r.Status != notifier.Delivered:
		return r.Status, "Nothing to send."
	case r.Elapsed < time.Second:
		return r.Status, fmt.Sprintf("Delivered in %d ms.", r.Elapsed.Milliseconds())
	}
	return r.Status, fmt.Sprintf("Delivered in %.1f s.", r.Elapsed.Seconds())
}
