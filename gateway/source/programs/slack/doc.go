// Package slack reads the messages of programs that send to Slack, or to a
// chat that takes Slack's messages: incoming webhooks, the Web API,
// Mattermost and Rocket.Chat.
package slack
