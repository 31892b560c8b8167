package services

import (
	"context"
	"strconv"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[join]()

// join pushes to the devices of a Join account.
type join struct {
	key, device string
	targets     []string
	image       bool
	priority    int
}

func (j *join) Describe(s *notifier.Schema) {
	s.Name, s.Site = "Join", "https://joaoapps.com/join/api/"
	s.Setup = "Open joinjoaomgcd.appspot.com, choose a device and Join API; the page shows the ID of the device and the API key."
	s.Groups(notifier.GroupPhone)
	s.Words("joaoapps", "android", "tasker")
	s.URL("join://{apikey}[/{targets...}]", "join://{apikey}@{device}[/{targets...}]")
	s.Way(1, "to all devices, or to those you name")
	s.Way(2, "to one device")
	s.Limits.Body = 1000
	s.Secret(&j.key, "apikey", "API key").Match("^[a-z0-9]{32}$").Example("1234567890abcdef1234567890abcdef")
	s.String(&j.device, "device", "", "ID or name of a device, or name of a group").Example("phone")
	s.List(&j.targets, "targets", "IDs and names of devices, names of groups; default: all").Alias("to")
	s.Bool(&j.image, "image", true, "show the icon of the message's type")
	s.Enum(&j.priority, "priority", "normal", pushPriorities, "priority of the message").Lenient()
}

const joinAPI = "https://joinjoaomgcd.appspot.com/_ah/api/messaging/v1/sendPush"

var (
	joinDevice = lazyregexp.New(`^[A-Za-z0-9]{32}$`)
	joinGroup  = lazyregexp.New(`^(group\.)?(all|android|chrome|windows10|phone|tablet|pc)$`)
)

func (j *join) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	targets := j.targets
	if j.device != "" {
		targets = append([]string{j.device}, targets...)
	} else if len(targets) == 0 {
		targets = []string{"group.all"}
	}
	return c.Steps.Each(ctx, targets, func(ctx context.Context, target string) error {
		query := notifier.Fields("apikey", j.key, "priority", strconv.Itoa(j.priority), "title", m.Title, "text", m.Body)
		if group := joinGroup.FindStringSubmatch(strings.ToLower(target)); group != nil {
			query.Set("deviceId", "group."+group[2])
		} else if joinDevice.MatchString(target) {
			query.Set("deviceId", target)
		} else {
			query.Set("deviceNames", target)
		}
		if j.image && m.Icon(72) != "" {
			query.Set("icon", m.Icon(72))
		}
		return checkedDo(ctx, c, &notifier.Request{URL: joinAPI, Query: query, Body: notifier.Form(nil)}, "success", "errorMessage")
	})
}
