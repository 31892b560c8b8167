package slack

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"unicode/utf8"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
	"github.com/caddy-notify/caddy-notify/notifier/services/internal/shown"
)

var (
	channelPattern = lazyregexp.New(`^([+#@]?([\p{L}\p{M}\p{N}._-]+))(?::([0-9.]+))?$`)
	emailPattern   = lazyregexp.New(`^[^@\s]+@[^@\s]+\.[^@\s]+$`)
)

// arrival is a target that has the message, with its channel and thread.
type arrival struct{ target, channel, thread string }

// post sends the payload to all targets, even if some of them fail, and then the files to those
// that have it.
func (k *service) post(ctx context.Context, c *notifier.Client, m *notifier.Message, payload map[string]any) error {
	targets := k.targets
	if len(targets) == 0 {
		targets = []string{""} // the channel of the webhook
	}
	var arrived []arrival
	var errs []error
	for i, target := range targets {
		var a arrival
		var err error
		if k.update && shown.Use(m) {
			a, err = k.show(ctx, c, m, target)
		} else {
			a, err = k.postOnce(ctx, c, target, payload)
		}
		errs = append(errs, notifier.TargetError(i, len(targets), err))
		if err == nil && a.channel != "" {
			arrived = append(arrived, a)
		}
	}
	if k.accessToken != "" && len(m.Attachments) > 0 {
		if len(arrived) == 0 && errors.Join(errs...) == nil {
			c.Warn("Slack did not return the channel, so the files could not be sent")
		}
		errs = append(errs, k.share(ctx, c, m.Attachments, arrived))
	}
	return errors.Join(errs...)
}

// postOnce posts the payload to a target unless that has it already.
func (k *service) postOnce(ctx context.Context, c *notifier.Client, target string, payload map[string]any) (arrival, error) {
	var channel string
	err := c.Steps.Once("text "+target, func() error {
		p := maps.Clone(payload)
		err := k.address(ctx, c, target, p)
		if err == nil {
			channel, _, err = k.deliver(ctx, c, p)
		}
		return err
	})
	if err != nil {
		return arrival{}, err
	}
	// A retry does not post again and gets the channel from here.
	channel, err = notifier.OnceValue(c.Steps, "channel of "+target, func() (string, error) { return channel, nil })
	return arrival{target, channel, threadOf(target)}, err
}

// threadOf returns the thread in a target, or "".
func threadOf(target string) string {
	_, thread, _ := splitChannel(target)
	return thread
}

// splitChannel returns the channel in a target, of at most maxChannel
// characters, and the thread. The pattern has no bound, because the compiled one
// would take 3 MB.
func splitChannel(target string) (channel, thread string, ok bool) {
	m := channelPattern.FindStringSubmatch(target)
	if m == nil || utf8.RuneCountInString(m[2]) > maxChannel {
		return "", "", false
	}
	return m[1], m[3], true
}

const maxChannel = 80

// address sets the channel and thread of a target in the payload.
func (k *service) address(ctx context.Context, c *notifier.Client, target string, p map[string]any) error {
	if target == "" {
		return nil
	}
	if emailPattern.MatchString(target) {
		id, err := k.lookup(ctx, c, target)
		p["channel"] = id
		return err
	}
	channel, thread, ok := splitChannel(target)
	if !ok {
		return errors.New("the target is neither #channel, @user, +id nor an e-mail address")
	}
	switch channel[0] {
	case '+':
		p["channel"] = channel[1:]
	case '@', '#':
		p["channel"] = channel
	default:
		p["channel"] = "#" + channel
	}
	if thread != "" {
		p["thread_ts"] = thread
	}
	return nil
}

// deliver posts a message and returns its channel and its time stamp if Slack
// returns them.
func (k *service) deliver(ctx context.Context, c *notifier.Client, p map[string]any) (channel, ts string, err error) {
	if k.accessToken != "" {
		var answer struct {
			response
			Channel string `json:"channel"`
			TS      string `json:"ts"`
		}
		q := k.api("chat.postMessage")
		q.Body = notifier.JSON(p)
		if err := c.DoJSON(ctx, q, &answer); err != nil {
			return "", "", err
		}
		return answer.Channel, answer.TS, answer.check()
	}
	base := "https://hooks.slack.com/services"
	if k.mode == modeGov {
		base = "https://hooks.slack-gov.com/services"
	}
	resp, err := c.Do(ctx, &notifier.Request{URL: base + notifier.Path(k.token[:]...), Body: notifier.JSON(p)})
	if err == nil && strings.TrimSpace(string(resp.Body)) != "ok" {
		err = fmt.Errorf("Slack answered %.200q instead of ok", resp.Body)
	}
	return "", "", err
}
