package services

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// fcmPriorities has, for each priority, its values for Android, Apple's push
// service and browsers.
var fcmPriorities = map[string][3]string{
	"min":    {"NORMAL", "5", "very-low"},
	"low":    {"NORMAL", "5", "low"},
	"normal": {"NORMAL", "5", "normal"},
	"high":   {"HIGH", "10", "high"},
	"max":    {"HIGH", "10", "high"},
}

// message returns the message to one target for the HTTP v1 API. It replaces the
// notification with the same id, unless that is empty. It has no collapse_key for
// Android, because FCM keeps four keys for a device that is offline and drops the
// messages with others.
func (f *fcm) message(target, id string, shown map[string]string, color string) map[string]any {
	message := map[string]any{"notification": shown}
	if topic, ok := strings.CutPrefix(target, "#"); ok {
		message["topic"] = topic
	} else {
		message["token"] = target
	}
	look := omitEmpty(map[string]any{"color": color, "tag": id})
	android := map[string]any{}
	if len(look) > 0 {
		android["notification"] = look
	}
	apple, web := map[string]string{}, map[string]string{} // headers
	if id != "" {
		apple["apns-collapse-id"], web["Topic"] = id, id
	}
	if p, ok := fcmPriorities[f.priority]; ok {
		android["priority"], apple["apns-priority"], web["Urgency"] = p[0], p[1], p[2]
		if p[0] == "HIGH" {
			apple["apns-push-type"] = "alert"
		}
	}
	if len(android) > 0 {
		message["android"] = android
	}
	if len(apple) > 0 {
		message["apns"] = map[string]any{"headers": apple}
		message["webpush"] = map[string]any{"headers": web}
	}
	if len(f.data) > 0 {
		message["data"] = f.data
	}
	return message
}

// sendLegacy sends the message to one target with the legacy API.
func (f *fcm) sendLegacy(ctx context.Context, c *notifier.Client, target string, shown map[string]string, color string) error {
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
	return fcmLegacyError(resp)
}

// fcmDenied are the errors about the app and the device.
var fcmDenied = []string{"InvalidPackageName", "InvalidRegistration", "MismatchSenderId", "MissingRegistration", "NotRegistered"}

// fcmLegacyError returns the error in an answer of the legacy API, or nil. The
// status is 200 even if the message was not delivered.
func fcmLegacyError(resp *notifier.Response) error {
	type result struct{ Error string }
	var answer struct {
		Failure int
		result           // for a topic
		Results []result // for a device
	}
	if resp.JSON(&answer) != nil {
		return nil
	}
	for _, r := range append(answer.Results, answer.result) {
		if r.Error != "" {
			err := errors.New("the service did not deliver the message: " + r.Error)
			if slices.Contains(fcmDenied, r.Error) {
				err = notifier.Denied(err)
			}
			return err
		}
	}
	if answer.Failure > 0 {
		return errors.New("the service did not deliver the message")
	}
	return nil
}
