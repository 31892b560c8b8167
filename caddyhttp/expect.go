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
// time, or comes with the type `failure`, the key gets a failure, and with the next
// beat the success.
type Expect struct {
	// The name of the beat: 1 to 64 letters, digits, `_`, `-` and `.`. Example:
	// `nightly`. Required.
	Name string `json:"name,omitempty"`

	// The longest time from one beat to the next. A duration such as `"24h"`, or a number of
	// nanoseconds, from 1s to 400d. One of 6 hours and more is an hour longer where the
	// clock on the wall is put back. Required.
	Every caddy.Duration `json:"every,omitempty"`

	// How much later a beat may come. A duration such as `"2h"`, or a number of
	// nanoseconds, from 1s to 400d. Default: a tenth of `every`, at least 1s.
	Grace caddy.Duration `json:"grace,omitempty"`

	// A tag expression that chooses the URLs that are told, such as `phone`. At least one
	// URL must match. Default: the key's `default_tag`.
	Tag string `json:"tag,omitempty"`
}

// options returns what a key expects.
func (c *Expect) options() site.BeatOptions {
	every := time.Duration(c.Every)
	return site.BeatOptions{Expect: rules.Expect{Name: c.Name, Every: every, Grace: cmp.Or(time.Duration(c.Grace), rules.DefaultGrace(every))}, Tag: c.Tag}
}

// expectName returns the name of an expectation in block.Info.Lines.
func expectName(key, name string) string { return block.KeyPrefix + key + ", expect " + name }

var (
	errExpectWithoutQueue = errors.New("beats are kept in the queue, and there is none; add queue to the global option notify, or remove the line")
	errExpectUnqueued     = errors.New("beats are kept in the queue, which the key does not use; remove queue off, or this line")
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

// readExpect reads the subdirective expect of a key.
func (k *keyBlock) readExpect() block.Option {
	const usage = "expect <name> every <duration> [grace <duration>] [{ tag <expression> }]"
	return block.Option{Usage: usage, Min: 3, Max: 5, Repeat: true, Block: func(d *caddyfile.Dispenser, args []string) error {
		at := *d
		x := &Expect{Name: args[0]}
		known := map[string]*caddy.Duration{"every": &x.Every, "grace": &x.Grace}
		err := rules.CheckBeatName(x.Name)
		for i := 1; i < len(args) && err == nil; i += 2 {
			to := known[args[i]]
			switch {
			case to == nil || i+1 == len(args):
				err = errors.New("wrong arguments; expected " + usage)
			case *to != 0:
				err = fmt.Errorf("%s occurs twice; remove one", args[i])
			default:
				if err = block.Duration(to)(args[i+1 : i+2]); err != nil {
					err = errs.Prefix(args[i], err)
				}
			}
		}
		if err == nil && x.Every == 0 {
			err = errors.New("wrong arguments; expected " + usage)
		}
		if err == nil {
			o := x.options()
			err = o.Check()
		}
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
