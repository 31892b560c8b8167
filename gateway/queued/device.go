package queued

import (
	"slices"
	"strings"
	"time"

	"github.com/caddy-notify/caddy-notify/gateway/message"
	"github.com/caddy-notify/caddy-notify/gateway/site"
	"github.com/caddy-notify/caddy-notify/notifier"
)

// A device is somebody's phone or browser, and the operator does not run its push service. Its
// failure does not count while another destination has the message or will get it. Otherwise a
// single refused subscription would make each message to the key a failure, and senders would
// repeat it to all destinations.

// hasMessage reports whether a destination has the message or will get it.
func hasMessage(status notifier.Status) bool {
	return status == notifier.Delivered || status == message.StatusQueued
}

func isFailedDevice(destination string, status notifier.Status) bool {
	return status == notifier.Failed && strings.HasPrefix(destination, site.DeviceScheme)
}

// IgnoreDevices marks the failures of devices as optional if another destination of the
// report has the message. It changes no slice of the report.
func IgnoreDevices(r *notifier.Report) {
	failed := func(r notifier.Result) bool { return isFailedDevice(r.Destination, r.Status) && !r.Optional }
	if !slices.ContainsFunc(r.Results, failed) || !slices.ContainsFunc(r.Results, func(r notifier.Result) bool { return hasMessage(r.Status) }) {
		return
	}
	r.Results = slices.Clone(r.Results)
	r.Records = slices.Clip(r.Records)
	for i := range r.Results {
		if failed(r.Results[i]) {
			r.Results[i].Optional = true
			r.Records = append(r.Records, notifier.Record{
				Time: time.Now(), Level: notifier.LevelWarning, Text: "The failure of " + r.Results[i].Destination + " is ignored, because another destination has the message.",
			})
		}
	}
}

// ignoreDevices is like [IgnoreDevices] for the results of a stored message.
func ignoreDevices(results []message.QueuedResult) {
	if !slices.ContainsFunc(results, func(r message.QueuedResult) bool { return hasMessage(r.Status) }) {
		return
	}
	for i := range results {
		if r := &results[i]; isFailedDevice(r.Destination, r.Status) {
			r.Optional = true
		}
	}
}
