package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/caddyserver/caddy/v2"
	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Expect says that a beat has to come again and again: a request to the key with
// `?beat=` and the name, for example at the end of a back-up. If it does not come in
// time, or comes with the type `failure` or an exit code other than 0, the key gets a
// failure, and with the next beat the success. Either `every` or `cron` is required.
type Expect struct {
	// The name of the beat: 1 to 64 letters, digits, `_`, `-` and `.`. Example:
	// `nightly`. Required.
	Name string `json:"name,omitempty"`

	// The longest time from one beat to the next. A duration such as `"24h"`, or a number of
	// nanoseconds, from 1s to 400d. One of 6 hours and more is an hour longer where the
	// clock on the wall is put back.
	Every caddy.Duration `json:"every,omitempty"`

	// When beats are due: minute, hour, day of the month, month and day of the week, as in a
	// crontab. Example: `15 3 * * 1-5`. What is due while the clock on the wall is put
	// forward is due at the end of that gap, and what is due at a time that comes twice is
	// due once.
	Cron string `json:"cron,omitempty"`

	// The time zone of `cron`. Example: `Europe/Berlin`. Default: the server's time zone.
	Zone string `json:"zone,omitempty"`

	// How much later a beat may come. A duration such as `"2h"`, or a number of
	// nanoseconds, from 1s to 400d. Default: a tenth of `every`, or of the shortest time
	// between two beats of `cron`, at least 1s.
	Grace caddy.Duration `json:"grace,omitempty"`

	// How long a run may take from its start, a beat with `&state=start`, to its end. If it
	// takes longer, the key gets a failure. A duration such as `"1h"`, or a number of
	// nanoseconds, from 1s to 400d. Default: any time.
	MaxRun caddy.Duration `json:"max_run,omitempty"`

	// A tag expression that chooses the URLs that are told, such as `phone`. At least one
	// URL must match. Default: the key's `default_tag`.
	Tag string `json:"tag,omitempty"`
}

// options returns what a key expects.
func (c *Expect) options() (o site.BeatOptions, err error) {
	o = site.BeatOptions{
		Expect: rules.Expect{Name: c.Name, Every: time.Duration(c.Every), Grace: time.Duration(c.Grace), MaxRun: time.Duration(c.MaxRun)},
		Tag:    c.Tag,
	}
	switch {
	case c.Cron != "":
		if o.Calendar, err = rules.ParseCalendar(c.Cron, c.Zone); err != nil {
			return o, errs.Prefix("cron", err)
		}
	case c.Zone != "":
		return o, errors.New("zone: it belongs to cron; add cron, or remove zone")
	}
	o.Grace = cmp.Or(o.Grace, o.DefaultGrace())
	return o, nil
}

// expectName returns the name of an expectation in block.Info.Lines.
func expectName(key, name string) string { return block.KeyPrefix + key + ", expect " + name }

var (
	errExpectWithoutQueue = errors.New("beats are kept in the queue, and there is none; " +
		"add queue to the global option notify, or remove the line")
	errExpectUnqueued = errors.New("beats are kept in the queue, which the key does not use; remove queue off, or this line")
)

// checkExpects returns an error for expectations without a queue.
func (s *Settings) checkExpects(durable bool) error {
	for _, name := range slices.Sorted(maps.Keys(s.Keys)) {
		k := s.Keys[name]
		if len(k.Expect) == 0 {
			continue
		}
		err := errExpectWithoutQueue
		if durable {
			if k.Queue == nil || *k.Queue {
				continue
			}
			err = errExpectUnqueued
		}
		beat := k.Expect[0].Name
		return s.Caddyfile.Locate(expectName(name, beat), fmt.Errorf("key %s: expect %s: %w", name, beat, err))
	}
	return nil
}

// expectUsage is the form of the subdirective expect.
const expectUsage = `expect <name> every <duration>|cron "<minute> <hour> <day> <month> ` +
	`<weekday>" [<zone>] [grace <duration>] [max_run <duration>] [{ tag <expression> }]`

// read reads the arguments of the subdirective expect.
func (c *Expect) read(args []string) error {
	c.Name = args[0]
	if err := rules.CheckBeatName(c.Name); err != nil {
		return err
	}
	durations := map[string]*caddy.Duration{"every": &c.Every, "grace": &c.Grace, "max_run": &c.MaxRun}
	for args = args[1:]; len(args) > 0; args = args[2:] {
		word, to := args[0], durations[args[0]]
		switch {
		case to == nil && word != "cron", len(args) == 1:
			return errors.New("wrong arguments; expected " + expectUsage)
		case to != nil && *to != 0, to == nil && c.Cron != "":
			return fmt.Errorf("%s occurs twice; remove one", word)
		case to != nil:
			if err := block.Duration(to)(args[1:2]); err != nil {
				return errs.Prefix(word, err)
			}
			continue
		}
		c.Cron = cmp.Or(args[1], " ") // which is refused
		if len(args) > 2 && args[2] != word && durations[args[2]] == nil {
			c.Zone, args = args[2], args[1:]
		}
		if _, err := rules.ParseCalendar(c.Cron, c.Zone); err != nil {
			return errs.Prefix(word, err)
		}
	}
	if c.Every == 0 && c.Cron == "" {
		return errors.New("wrong arguments; expected " + expectUsage)
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	return o.Check()
}

// readExpect reads the subdirective expect of a key.
func (k *keyBlock) readExpect() block.Option {
	const most = 12 // so that fields without quotes have an error of their own
	return block.Option{Usage: expectUsage, Min: 3, Max: most, Repeat: true, Block: func(d *caddyfile.Dispenser, args []string) error {
		at := *d
		x := new(Expect)
		err := x.read(args)
		if err == nil && slices.ContainsFunc(k.Key.Expect, func(o *Expect) bool { return o.Name == x.Name }) {
			err = fmt.Errorf("the name %s occurs twice; choose another one, or remove one", x.Name)
		}
		if err != nil {
			return at.WrapErr(errs.Prefix("expect", err))
		}
		k.settings.to.Caddyfile.Record(expectName(k.name, x.Name), d)
		k.Key.Expect = append(k.Key.Expect, x)
		return block.ReadOptional(d, "expect", block.Options{
			"tag": {Usage: "tag <expression>", Min: 1, Max: 1, Line: func(args []string) error {
				x.Tag = args[0]
				if x.Tag == "" {
					return site.ErrEmptyTag
				}
				_, err := notifier.ParseTags(x.Tag)
				return err
			}},
		})
	}}
}
