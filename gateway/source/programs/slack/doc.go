// Package slack reads messages for Slack or for a chat that takes Slack's messages: incoming
// webhooks, the Web API, Mattermost and Rocket.Chat.
package slack
