// Package slack sends messages to Slack through webhooks, workflows and bots.
package slack
