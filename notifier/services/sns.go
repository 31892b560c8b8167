package services

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/internal/lazyregexp"
	"github.com/caddy-notify/caddy-notify/notifier"
)

var _ = notifier.Register[sns]()

// sns publishes through Amazon Simple Notification Service: as SMS to telephone
// numbers, and to topics.
type sns struct {
	aws
	targets []string // +number or #topic
	mode    string
}

func (n *sns) Describe(s *notifier.Schema) {
	s.Name, s.Site = "AWS SNS", "https://docs.aws.amazon.com/sns/latest/api/API_Publish.html"
	s.Setup = "Create an access key for an IAM user with the permission sns:Publish, " +
		"and sns:CreateTopic for topics; region is the AWS region, such as us-east-1."
	s.Groups(notifier.GroupSMS, notifier.GroupServer)
	s.Words("amazon sns", "simple notification service")
	s.URL("sns://[{token}@]{access_key_id}/{secret_access_key...}/{region}/{targets...}")
	s.Hints(
		notifier.Hint{Text: `(?<access_key_id>AKIA[A-Z0-9]{16})`, Is: "the ID of an access key", Guess: true},
		notifier.Hint{Text: `arn:aws:sns:(?<region>[a-z0-9-]+):\d{12}:(?<targets>[\w-]+)`, Is: "the ARN of a topic"},
	)
	n.describe(s)
	s.List(&n.targets, "targets", "telephone numbers and #topics").Alias("to").Normalize(snsTarget).Example("15551234567")
	s.Choice(&n.mode, "mode", "", []string{"sms", "topic"}, "limits of messages; default: topic if all targets are topics")
}

var snsTopic = lazyregexp.New(`^#?([A-Za-z0-9_-]{1,256})$`)

func snsTarget(s string) (string, error) {
	if phone, err := notifier.FullPhone(s); err == nil {
		return "+" + phone, nil
	}
	if topic := snsTopic.FindStringSubmatch(s); topic != nil {
		return "#" + topic[1], nil
	}
	return "", errors.New("is not a telephone number or the name of a topic")
}

func (n *sns) Finish(s *notifier.Schema) error {
	isPhone := func(t string) bool { return strings.HasPrefix(t, "+") }
	s.Limits.Title, s.Limits.Body = 0, 160
	if n.mode == "topic" || n.mode == "" && !slices.ContainsFunc(n.targets, isPhone) {
		s.Limits.Title, s.Limits.Body = 100, 256000
	}
	return nil
}

func (n *sns) Send(ctx context.Context, c *notifier.Client, m *notifier.Message) error {
	return c.Steps.Each(ctx, n.targets, func(ctx context.Context, target string) error {
		if topic, ok := strings.CutPrefix(target, "#"); ok {
			return n.publish(ctx, c, topic, m)
		}
		return n.act(ctx, c, nil, "Publish", "PhoneNumber", target, "Message", m.Text("\r\n"))
	})
}

// publish sends to a topic, and creates the topic if it does not exist.
func (n *sns) publish(ctx context.Context, c *notifier.Client, topic string, m *notifier.Message) error {
	var created struct {
		ARN string `xml:"CreateTopicResult>TopicArn"`
	}
	if err := n.act(ctx, c, &created, "CreateTopic", "Name", topic); err != nil {
		return err
	}
	if created.ARN == "" {
		return errors.New("the service's answer has no ARN of the topic")
	}
	if !snsSubject.MatchString(m.Title) {
		return n.act(ctx, c, nil, "Publish", "TopicArn", created.ARN, "Message", m.Text("\r\n"))
	}
	return n.act(ctx, c, nil, "Publish", "TopicArn", created.ARN, "Message", m.Body, "Subject", m.Title)
}

// snsSubject matches titles that the service accepts as a subject.
var snsSubject = lazyregexp.New(`^[!-~][ -~]*$`)

// act calls the API and reads the XML of the answer into v, which may be nil.
func (n *sns) act(ctx context.Context, c *notifier.Client, v any, action string, params ...string) error {
	form := notifier.Fields(append([]string{"Action", action, "Version", "2010-03-31"}, params...)...)
	resp, err := n.post(ctx, c, "sns", "sns", form)
	if err != nil || v == nil {
		return err
	}
	if err := xml.Unmarshal(resp.Body, v); err != nil {
		return fmt.Errorf("the service's answer to %s is not the expected XML", action)
	}
	return nil
}
