// Package telegram sends messages to people, groups and channels as a Telegram
// bot.
package telegram
