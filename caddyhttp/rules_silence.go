package caddyhttp

import (
	"errors"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Silence keeps messages from their destinations in a part of the day, by the clock on the
// wall. A problem that begins or gets worse meanwhile is told at its end, if it is still open
// then. Other messages that match are not sent.
type Silence struct {
	// From when to when. If the end is not after the beginning, it is on the next day.
	// Example: `02:00-04:00`. Required.
	Window string `json:"window,omitempty"`

	// The days on which the window begins. Example: `["sun"]`. Default: every day.
	Days []string `json:"days,omitempty"`

	// The time zone. Example: `Europe/Berlin`. Default: the server's time zone.
	Zone string `json:"zone,omitempty"`

	// A tag of URLs. The silence holds for those that have it. Default: every URL.
	Tag string `json:"tag,omitempty"`

	// What the title of the messages begins with, in any case. Default: every message.
	Title string `json:"title,omitempty"`

	// Why, for those who read the list of silences, or are told.
	Reason string `json:"reason,omitempty"`

	// Whether a message tells when the silence begins, and another one when it ends: to the URLs
	// with the tag or, without one, to the URLs of the key's `default_tag`. Not in `configs`.
	// Default: `false`.
	Tell bool `json:"tell,omitempty"`
}

// resolveSilences returns the silences.
func resolveSilences(all []*Silence) (out []rules.SilenceWindow, err error) {
	for _, s := range all {
		if s == nil {
			return nil, errors.New("silence: it is null; write a window, or remove it")
		}
		w := rules.SilenceWindow{Title: s.Title, Reason: s.Reason, Tell: s.Tell}
		if w.Window, err = rules.ParseWindow(arguments(s.Window, s.Days, s.Zone)); err != nil {
			return nil, errs.Prefix("silence", err)
		}
		if !strings.EqualFold(s.Tag, rules.AllTags) {
			w.Tag = s.Tag
		}
		out = append(out, w)
	}
	return out, nil
}

// errTellSaved is returned for a silence of saved keys that is told.
var errTellSaved = errors.New("silence: tell would send to every saved key at once; remove it, or define the key in the configuration")

// checkSavedRules returns an error for rules that saved keys cannot have.
func (c *Rules) checkSavedRules() error {
	for _, s := range c.Silence {
		if s.Tell {
			return errTellSaved
		}
	}
	return nil
}

// readSilence reads the subdirective silence. saved reports whether it is one of saved keys.
func (c *Rules) readSilence(args []string, saved bool) (block.Options, error) {
	w, err := rules.ParseWords(args)
	s := &Silence{Window: strings.Join(w.Times, " "), Days: w.DayNames, Zone: w.ZoneName}
	c.Silence = append(c.Silence, s)
	if err == nil {
		_, err = rules.ParseWindow(args)
	}
	text := func(name string, to *string) block.Option {
		return block.Option{Usage: name + " <text>", Min: 1, Max: 1, Line: func(args []string) error {
			*to = args[0]
			return nil
		}}
	}
	return block.Options{
		"title":  text("title", &s.Title),
		"reason": text("reason", &s.Reason),
		"tag": {Usage: "tag <tag>", Min: 1, Max: 1, Line: func(args []string) error {
			s.Tag = args[0]
			if strings.EqualFold(s.Tag, rules.AllTags) {
				return nil
			}
			return site.CheckTag(s.Tag)
		}},
		"tell": {Usage: "tell", Line: func([]string) error {
			s.Tell = true
			if saved {
				return trimRule(errTellSaved, "silence")
			}
			return nil
		}},
	}, err
}

// readSilenceBlock reads the block of a silence, if there is one.
func readSilenceBlock(d *caddyfile.Dispenser, known block.Options) error {
	if err := block.ReadOptional(d, "silence", known); err != nil {
		return &blockError{err}
	}
	return nil
}
