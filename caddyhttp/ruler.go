package caddyhttp

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/block"
	"github.com/caddy-notify/caddy-notify/caddyhttp/internal/placeholder"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/internal/errs"
	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// fromRuler is the name of the settings of rulers in block.Info.
const fromRuler = "from " + site.SourceRuler

var (
	errRulerWithoutQueue = errors.New("the alerts of rulers are kept in the queue, " +
		"and there is none; add queue to the global option notify, or remove the block")
	errRulerTemplates = errors.New("it takes group_by, group_wait, group_interval and token only, " +
		"because its messages are those of the source alertmanager; remove the others")
)

// rulerOptions returns the subdirectives of from prometheus.
func (s *Source) rulerOptions() block.Options {
	return block.Options{
		"group_by": {Usage: "group_by <label>...", Min: 1, Max: math.MaxInt, Line: func(args []string) error {
			s.GroupBy = args
			return nil
		}},
		"group_wait":     {Usage: "group_wait <duration>", Min: 1, Max: 1, Line: block.Duration(&s.GroupWait)},
		"group_interval": {Usage: "group_interval <duration>", Min: 1, Max: 1, Line: block.Duration(&s.GroupInterval)},
		"token":          s.tokenOption(),
	}
}

// loadRuler returns the settings of the source prometheus, with placeholders replaced.
func (s *Source) loadRuler() (*site.Ruler, error) {
	if s == nil {
		return nil, errors.New("it is empty; remove it, or give it a token")
	}
	if s.TitleFile+s.BodyFile+s.Title+s.Body+s.Type+s.Tag+s.Format+s.Incident+s.Skip+s.Sign+s.Secret != "" ||
		len(s.Types) > 0 || s.Images || s.Mentions != nil {
		return nil, errRulerTemplates
	}
	token, err := placeholder.Resolve(s.Token)
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	if token = strings.TrimSpace(token); token == "" && s.Token != "" {
		return nil, errors.New("token: it is empty; write the token of the program that sends")
	}
	return site.NewRuler(site.Ruler{
		Token: token, GroupBy: s.GroupBy, Times: rules.GroupTimes{Wait: time.Duration(s.GroupWait), Interval: time.Duration(s.GroupInterval)},
	})
}

// resolveRuler returns the settings of rulers in s, or nil if there are none.
func (s *Settings) resolveRuler() (*site.Ruler, error) {
	c, ok := s.Sources[site.SourceRuler]
	if !ok {
		return nil, nil
	}
	r, err := c.loadRuler()
	if err != nil {
		return nil, s.Caddyfile.Locate(fromRuler, errs.Prefix(fromRuler, err))
	}
	return r, nil
}

// checkRuler returns an error for settings of rulers without a queue.
func (s *Settings) checkRuler(durable bool) error {
	if _, ok := s.Sources[site.SourceRuler]; !ok || durable {
		return nil
	}
	return s.Caddyfile.Locate(fromRuler, errs.Prefix(fromRuler, errRulerWithoutQueue))
}
