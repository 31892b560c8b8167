package caddyhttp

import (
	"errors"
	"slices"
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

	// What the title of the messages begins with, in any case. `*` stands for any text.
	// Default: every message.
	Title string `json:"title,omitempty"`

	// Why, for those who read the list of silences, or are told.
	Reason string `json:"reason,omitempty"`

	// Whether a message tells when the silence begins, and another one when it ends: to the URLs
	// with the tag or, without one, to the URLs of the key's `default_tag`. Not in `configs`.
	// Default: `false`.
	Tell bool `json:"tell,omitempty"`
}

// toSilences hands over silence.
func (c *Rules) toSilences(r *rules.Rules) (err error) {
	if len(c.Silence) > maxRules {
		return errManyRules
	}
	for _, s := range c.Silence {
		if s == nil {
			return errors.New("it is null; write a window, or remove it")
		}
		w := rules.SilenceWindow{Title: s.Title, Reason: s.Reason, Tell: s.Tell}
		if w.Window, err = rules.ParseWindow(arguments(s.Window, s.Days, s.Zone)); err != nil {
			return err
		}
		if !strings.EqualFold(s.Tag, rules.AllTags) {
			w.Tag = s.Tag
		}
		r.Windows = append(r.Windows, w)
	}
	return nil
}

// errTellSaved is returned for a silence of saved keys that is told.
var errTellSaved = errors.New("tell would send to every saved key at once; remove it, or define the key in the configuration")

// checkSavedRules returns an error for rules that saved keys cannot have.
func (c *Rules) checkSavedRules() error {
	if slices.ContainsFunc(c.Silence, func(s *Silence) bool { return s.Tell }) {
		return errs.Prefix("silence", errTellSaved)
	}
	return nil
}

// readSilence reads the arguments of silence.
func (k *keyBlock) readSilence(_ *caddyfile.Dispenser, args []string) error {
	w, err := rules.ParseWords(args)
	k.Silence = append(k.Silence, &Silence{Window: strings.Join(w.Times, " "), Days: w.DayNames, Zone: w.ZoneName})
	if err == nil {
		_, err = rules.ParseWindow(args)
	}
	return err
}

// silenceLines reads the block of the last silence.
func (k *keyBlock) silenceLines() block.Options {
	s := k.Silence[len(k.Silence)-1]
	text := func(to *string) block.Option {
		return block.Option{Min: 1, Max: 1, Line: func(args []string) error {
			*to = args[0]
			return nil
		}}
	}
	return block.Options{
		"title":  text(&s.Title),
		"reason": text(&s.Reason),
		"tag": {Min: 1, Max: 1, Line: block.Text(&s.Tag, func(tag string) error {
			if strings.EqualFold(tag, rules.AllTags) {
				return nil
			}
			return site.CheckTag(tag)
		})},
		"tell": {Line: func([]string) error {
			s.Tell = true
			if k.name == "" {
				return errTellSaved
			}
			return nil
		}},
	}
}
