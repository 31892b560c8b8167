package site

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Ruler says what a site does with the alerts that rulers post.
type Ruler struct {
	Token   string   // that requests must have; "" for one of the key
	GroupBy []string // names of the labels that alerts of an incident share, besides alertname
	Times   rules.GroupTimes
}

// RulerOptions are the settings of a [Ruler]. What is zero has the default.
type RulerOptions struct {
	GroupBy  []string      // default: none
	Wait     time.Duration // default: 30 s
	Interval time.Duration // default: 5 m
	Token    string        // that requests must have; default: one of the key
}

// The bounds of [RulerOptions].
const (
	defaultGroupWait     = 30 * time.Second
	defaultGroupInterval = 5 * time.Minute
	minGroupTime         = time.Second
	maxGroupTime         = 24 * time.Hour
	maxGroupBy           = 10
)

func defaultRuler() *Ruler {
	return &Ruler{Times: rules.GroupTimes{Wait: defaultGroupWait, Interval: defaultGroupInterval}}
}

// NewRuler returns what options describe.
func NewRuler(o RulerOptions) (*Ruler, error) {
	r := defaultRuler()
	r.Token, r.GroupBy = o.Token, slices.Sorted(slices.Values(o.GroupBy))
	for _, t := range []struct {
		name    string
		to      *time.Duration
		setting time.Duration
	}{{"group_wait", &r.Times.Wait, o.Wait}, {"group_interval", &r.Times.Interval, o.Interval}} {
		if t.setting == 0 {
			continue
		}
		if t.setting < minGroupTime || t.setting > maxGroupTime {
			return nil, fmt.Errorf("%s: the time must be from 1s to 24h", t.name)
		}
		*t.to = t.setting
	}
	if err := checkGroupBy(r.GroupBy); err != nil {
		return nil, fmt.Errorf("group_by: %w", err)
	}
	return r, nil
}

// checkGroupBy returns an error for labels that cannot group alerts, sorted by name.
func checkGroupBy(names []string) error {
	if len(names) > maxGroupBy {
		return fmt.Errorf("it names %d labels; at most %d are possible", len(names), maxGroupBy)
	}
	for i, name := range names {
		switch {
		case name == "":
			return errors.New("a name of a label is empty; remove it")
		case name == "...":
			return errors.New("... is not possible here; name the labels")
		case name == "alertname":
			return errors.New("alertname is always one of the labels; remove it")
		case i > 0 && name == names[i-1]:
			return fmt.Errorf("the label %s occurs twice; remove one", name)
		}
	}
	return nil
}
