package httpapi

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/api"
	"github.com/caddy-notify/caddy-notify/gateway/saved"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// checkQuery is the query parameter of a POST to /add/{KEY} that checks a configuration without
// saving it. With the value checkLocal, included files are not fetched.
const (
	checkQuery = "check"
	checkLocal = "local"
)

// Draft is a configuration from a client, with its mistakes and warnings.
type Draft struct {
	*api.Config
	Urls     int    // number of URLs, if it has no mistakes
	Problem  string // why it is not saved, if it has no mistakes
	Mistakes []saved.LineError
	Warnings []saved.LineError
}

// addConfig saves the configuration of a key and replaces an earlier one. If it is not saved, a
// browser gets the page with the text that it sent.
func (h *SavedKeys) addConfig(w http.ResponseWriter, r *http.Request, name string) error {
	c, err := api.ReadConfig(w, r, h.sender.Limits(false), h.Saved.MaxSize)
	if err != nil {
		return err
	}
	d := Draft{Config: c}
	d.Urls, d.Warnings, err = h.Changes(r).Save(r.Context(), name, d.Format, d.Text)
	if err == nil {
		h.tellTimes(w, r, name)
		writeChanged(w, r, name, "Saved", "Successfully saved configuration", d.Warnings)
		return nil
	}
	if !h.Resolved.Page || !api.PrefersHTML(r) {
		return err
	}
	d.Mistakes, _ = errors.AsType[saved.LineErrors](err)
	resp := h.ErrorResponse(r, err)
	h.Refuse(r, h.Lookup(name), resp.Status, resp.Error, err)
	if len(d.Mistakes) == 0 {
		d.Problem = resp.Error
	}
	return h.pages.Draft(w, r, name, resp.Status, &d)
}

// tellTimes sets the headers in which Apprise API sends the times of a configuration's creation and
// last change. They are missing if it cannot be read now.
func (h *SavedKeys) tellTimes(w http.ResponseWriter, r *http.Request, name string) {
	c, err := h.Saved.Get(r.Context(), name)
	if err != nil {
		return
	}
	const layout = "2006-01-02T15:04:05" // without a zone, which has a header of its own
	w.Header().Set("X-Apprise-Timezone", "UTC")
	w.Header().Set("X-Apprise-Config-Mtime", c.Changed.UTC().Format(layout))
	if !c.Created.IsZero() {
		w.Header().Set("X-Apprise-Config-Created", c.Created.UTC().Format(layout))
	}
}

// writeChanged writes the response to a change.
func writeChanged(w http.ResponseWriter, r *http.Request, key, title, text string, warnings []saved.LineError) {
	records := []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: text}}
	(&api.Response{
		Status: http.StatusOK, Title: title, BackURL: ConsoleKey(r, key),
		Records: appendMistakes(records, notifier.LevelWarning, warnings),
	}).Write(w, r)
}

// appendMistakes appends a record for each mistake.
func appendMistakes(records []notifier.Record, level notifier.Level, mistakes []saved.LineError) []notifier.Record {
	for _, m := range mistakes {
		text := m.Text()
		if m.Line > 0 {
			text = fmt.Sprintf("line %d: %s", m.Line, text)
		}
		records = append(records, notifier.Record{Time: time.Now(), Level: level, Text: text})
	}
	return records
}

// checkedMistake is the JSON of a mistake or warning.
type checkedMistake struct {
	Line int    `json:"line"` // 0 for the configuration as a whole
	Text string `json:"text"`
}

func newCheckedMistakes(mistakes []saved.LineError) []checkedMistake {
	out := make([]checkedMistake, 0, len(mistakes)) // never nil, which would be null in JSON
	for _, m := range mistakes {
		out = append(out, checkedMistake{m.Line, m.Text()})
	}
	return out
}

// checkConfig answers with the mistakes in a configuration. It saves nothing.
func (h *SavedKeys) checkConfig(w http.ResponseWriter, r *http.Request, name string) error {
	fetch := r.URL.Query().Get(checkQuery) != checkLocal
	c, err := api.ReadConfig(w, r, h.sender.Limits(false), h.Saved.MaxSize)
	if err != nil {
		return err
	}
	d := h.checkDraft(r.Context(), name, c, fetch)
	switch {
	case api.PrefersJSON(r):
		return WriteJSON(w, http.StatusOK, struct {
			URLs     int              `json:"urls"`
			Mistakes []checkedMistake `json:"mistakes"`
			Warnings []checkedMistake `json:"warnings"`
		}{d.Urls, newCheckedMistakes(d.Mistakes), newCheckedMistakes(d.Warnings)})
	case h.Resolved.Page && api.PrefersHTML(r):
		return h.pages.Draft(w, r, name, http.StatusOK, d)
	}
	records := appendMistakes(nil, notifier.LevelError, d.Mistakes)
	if len(records) == 0 {
		records = []notifier.Record{{Time: time.Now(), Level: notifier.LevelInfo, Text: "No mistakes in " + countURLs(d.Urls)}}
	}
	(&api.Response{Status: http.StatusOK, Records: appendMistakes(records, notifier.LevelWarning, d.Warnings)}).Write(w, r)
	return nil
}

// countURLs returns "1 URL" or "2 URLs".
func countURLs(n int) string {
	if n == 1 {
		return "1 URL"
	}
	return fmt.Sprintf("%d URLs", n)
}

// checkDraft returns a draft of c with its mistakes and warnings. Without fetch, included files are
// not checked.
func (h *SavedKeys) checkDraft(ctx context.Context, name string, c *api.Config, fetch bool) *Draft {
	d := &Draft{Config: c}
	var err error
	d.Urls, d.Warnings, err = h.Saved.Check(ctx, name, c.Format, c.Text, fetch)
	d.Mistakes, _ = errors.AsType[saved.LineErrors](err)
	return d
}
