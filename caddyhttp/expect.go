package caddyhttp

import (
	"cmp"
	"errors"
	"fmt"
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

// toExpects hands the beats to the gateway.
func (c *Key) toExpects(o *site.KeyOptions) error {
	for _, x := range c.Expect {
		if x == nil {
			return errors.New("it is null; write a name and every or cron, or remove it")
		}
		e, err := x.options()
		if err != nil {
			return &optionError{"expect " + x.Name, err}
		}
		o.Expects = append(o.Expects, e)
	}
	return nil
}

// expectArgs are the arguments of expect.
const expectArgs = `<name> every <duration>|cron "<minute> <hour> <day> <month> <weekday>" ` +
	`[<zone>] [grace <duration>] [max_run <duration>]`

// errExpectArgs is returned for other arguments.
var errExpectArgs = errors.New("wrong arguments; expected expect " + expectArgs)

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
			return errExpectArgs
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
		return errExpectArgs
	}
	o, err := c.options()
	if err != nil {
		return err
	}
	return o.Check()
}

// readExpect reads the arguments of expect.
func (k *keyBlock) readExpect(d *caddyfile.Dispenser, args []string) error {
	x := new(Expect)
	if err := x.read(args); err != nil {
		return err
	}
	if slices.ContainsFunc(k.Expect, func(o *Expect) bool { return o.Name == x.Name }) {
		return fmt.Errorf("the name %s occurs twice; choose another one, or remove one", x.Name)
	}
	k.settings.to.Caddyfile.Record(optionName(k.name, "expect "+x.Name), d)
	k.Expect = append(k.Expect, x)
	return nil
}

// expectTag reads the block of the last expect.
func (k *keyBlock) expectTag() block.Options {
	x := k.Expect[len(k.Expect)-1]
	return block.Options{"tag": {Min: 1, Max: 1, Line: func(args []string) error {
		x.Tag = args[0]
		if x.Tag == "" {
			return site.ErrEmptyTag
		}
		_, err := notifier.ParseTags(x.Tag)
		return err
	}}}
}
