package services

import (
	"context"
	"errors"
	"maps"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// fcmPriorities are what a priority means to Android, Apple's push service
// and browsers.
var fcmPriorities = map[string][3]string{
	"min":    {"NORMAL", "5", "very-low"},
	"low":    {"NORMAL", "5", "low"},
	"normal": {"NORMAL", "5", "normal"},
	"high":   {"HIGH", "10", "high"},
	"max":    {"HIGH", "10", "high"},
}

// message is the message to one target as the HTTP v1 API takes it.
func (f *fcm) message(target string, shown map[string]string, color string) map[string]any {
	message := map[string]any{"notification": shown}
	if topic, ok := strings.CutPrefix(target, "#"); ok {
		message["topic"] = topic
	} else {
		message["token"] = target
	}
	android := map[string]any{}
	if color != "" {
		android["notification"] = map[string]string{"color": color}
	}
	if p, ok := fcmPriorities[f.priority]; ok {
		android["priority"] = p[0]
		apple := map[string]string{"apns-priority": p[1]}
		if p[0] == "HIGH" {
			apple["apns-push-type"] = "alert"
		}
		message["apns"] = map[string]any{"headers": apple}
		message["webpush"] = map[string]any{"headers": map[string]string{"Urgency": p[2]}}
	}
	if len(android) > 0 {
		message["android"] = android
	}
	if len(f.data) > 0 {
		message["data"] = f.data
	}
	return message
}

// legacy sends to one target by the API before that.
func (f *fcm) legacy(ctx context.Context, c *notifier.Client, target string, shown map[string]string, color string) error {
	shown = maps.Clone(shown)
	if color != "" {
		shown["color"] = color
	}
	payload := map[string]any{"notification": map[string]any{"notification": shown}, "to": target}
	if strings.HasPrefix(target, "#") {
		payload["to"] = "/topics/" + target
	}
	if p, ok := fcmPriorities[f.priority]; ok {
		payload["priority"] = strings.ToLower(p[0])
	}
	if len(f.data) > 0 {
		payload["data"] = f.data
	}
	resp, err := c.Do(ctx, &notifier.Request{
		URL:    "https://fcm.googleapis.com/fcm/send",
		Header: map[string]string{"Authorization": "key=" + f.apikey},
		Body:   notifier.JSON(payload),
	})
	if err != nil {
		return err
	}
	return fcmVerdict(resp)
}

// fcmVerdict reads what a status of 200 does not say: that the message did not
// reach the device or the topic.
func fcmVerdict(resp *notifier.Response) error {
	type result struct{ Error string }
	var answer struct {
		Failure int
		result  // of a topic
		Results []result
	}
	if resp.JSON(&answer) != nil {
		return nil
	}
	for _, r := range append(answer.Results, answer.result) {
		if r.Error != "" {
			return errors.New("the service did not deliver the message: " + r.Error)
		}
	}
	if answer.Failure > 0 {
		return errors.New("the service did not deliver the message")
	}
	return nil
}
