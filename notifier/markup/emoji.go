package markup

import (
	"strings"
	"sync"

	"github.com/yuin/goldmark-emoji/definition"
)

// emojiNames builds the table when it is first needed. Most programs never use
// it.
var emojiNames = sync.OnceValue(func() definition.Emojis { return definition.Github() })

// maxEmojiName is a limit for the length of a name in bytes, longer than any.
const maxEmojiName = 64

// ReplaceEmojis replaces names of emojis between colons, such as :smile: and
// :+1:, by the emojis. The names are the names that GitHub and Slack use, in any case.
// Unknown names are kept.
func ReplaceEmojis(s string) string {
	if strings.Count(s, ":") < 2 {
		return s
	}
	var b strings.Builder
	for {
		start := strings.IndexByte(s, ':')
		if start < 0 {
			break
		}
		b.WriteString(s[:start])
		s = s[start:]
		chars, size := leadingEmoji(s)
		if size == 0 {
			chars, size = s[:1], 1
		}
		b.WriteString(chars)
		s = s[size:]
	}
	b.WriteString(s)
	return b.String()
}

// leadingEmoji returns the emoji whose name s begins with, and the size of the
// name and its colons in bytes. The size is 0 if there is no such name.
func leadingEmoji(s string) (chars string, size int) {
	for i := 1; i < len(s) && i <= maxEmojiName; i++ {
		c := s[i]
		if c == ':' {
			if chars = emoji(strings.ToLower(s[1:i])); chars == "" {
				return "", 0
			}
			return chars, i + 1
		}
		if !isLetter(c) && (c < '0' || c > '9') && c != '_' && c != '-' && c != '+' {
			return "", 0
		}
	}
	return "", 0
}

// slackEmojis are names of emojis in Slack and the names in GitHub, where they differ
// otherwise than emoji says.
var slackEmojis = map[string]string{
	"heavy_heart_exclamation_mark_ornament": "heavy_heart_exclamation", "hugging_face": "hugs", "knife_fork_plate": "plate_with_cutlery",
	"octagonal_sign": "stop_sign", "rain_cloud": "cloud_with_rain", "simple_smile": "slightly_smiling_face", "snow_cloud": "cloud_with_snow",
	"lightning": "cloud_with_lightning", "lightning_cloud": "cloud_with_lightning",
	"tornado_cloud": "tornado", "three_button_mouse": "computer_mouse",
	"table_tennis_paddle_and_ball": "ping_pong", "the_horns": "metal", "sign_of_the_horns": "metal", "waving_black_flag": "black_flag",
	"waving_white_flag": "white_flag", "face_with_rolling_eyes": "roll_eyes",
}

// emoji returns the emoji with a name in lower case, or "".
func emoji(name string) string {
	names := emojiNames()
	if e, ok := names.Get(name); ok && e.IsUnicode() {
		return string(e.Unicode)
	}
	if country, ok := strings.CutPrefix(name, "flag-"); ok { // :flag-de:
		return flag(country)
	}
	if tone, ok := strings.CutPrefix(name, "skin-tone-"); ok && len(tone) == 1 && tone >= "2" && tone <= "6" { // after an emoji
		return string('\U0001F3FB' + rune(tone[0]-'2'))
	}
	other, known := slackEmojis[name]
	if !known {
		other = strings.TrimSuffix(strings.TrimPrefix(name, "large_"), "_face") // :large_green_circle:, :robot_face:
	}
	if e, ok := names.Get(other); ok && e.IsUnicode() {
		return string(e.Unicode)
	}
	return ""
}

// flag returns the flag of a country, whose code has two letters, or "".
func flag(country string) string {
	if len(country) != 2 || !isLetter(country[0]) || !isLetter(country[1]) {
		return ""
	}
	const a = '\U0001F1E6' // the regional indicator A
	return string([]rune{a + rune(country[0]-'a'), a + rune(country[1]-'a')})
}
