package site

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/caddy-notify/caddy-notify/notifier/rules"
)

// Ruler says what a site does with the alerts that rulers post.
type Ruler struct {
	Token   string           // the token that requests must have; "" for a token of the key
	GroupBy []string         // labels that the alerts of an incident share, besides alertname
	Times   rules.GroupTimes // default: 30 s and 5 m
}

// The bounds of a [Ruler].
const (
	defaultGroupWait     = 30 * time.Second
	defaultGroupInterval = 5 * time.Minute
	minGroupTime         = time.Second
	maxGroupTime         = 24 * time.Hour
	maxGroupBy           = 10
)

// NewRuler returns r with the defaults.
func NewRuler(r Ruler) (*Ruler, error) {
	r.GroupBy = slices.Sorted(slices.Values(r.GroupBy))
	for _, t := range []struct {
		name  string
		time  *time.Duration
		usual time.Duration
	}{{"group_wait", &r.Times.Wait, defaultGroupWait}, {"group_interval", &r.Times.Interval, defaultGroupInterval}} {
		if *t.time = cmp.Or(*t.time, t.usual); *t.time < minGroupTime || *t.time > maxGroupTime {
			return nil, fmt.Errorf("%s: the time must be from 1s to 24h", t.name)
		}
	}
	if err := checkGroupBy(r.GroupBy); err != nil {
		return nil, fmt.Errorf("group_by: %w", err)
	}
	return &r, nil
}

// checkGroupBy returns an error if the labels cannot group alerts. names is sorted.
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
