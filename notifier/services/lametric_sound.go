package services

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// lametricSound returns the sound with number n as a device expects it.
func lametricSound(n int) map[string]any {
	name, category := lametricSounds[n-1].Name, "notifications"
	if strings.HasPrefix(name, "alarm") {
		category = "alarms"
	}
	return map[string]any{"category": category, "id": name, "repeat": 1}
}

// lametricSounds are the sounds of a device. The value of each is its position,
// counted from 1.
var lametricSounds = []notifier.Choice{
	{Name: "alarm1", Value: 1, Synonyms: []string{"a1", "a01"}},
	{Name: "alarm2", Value: 2, Synonyms: []string{"a2", "a02"}},
	{Name: "alarm3", Value: 3, Synonyms: []string{"a3", "a03"}},
	{Name: "alarm4", Value: 4, Synonyms: []string{"a4", "a04"}},
	{Name: "alarm5", Value: 5, Synonyms: []string{"a5", "a05"}},
	{Name: "alarm6", Value: 6, Synonyms: []string{"a6", "a06"}},
	{Name: "alarm7", Value: 7, Synonyms: []string{"a7", "a07"}},
	{Name: "alarm8", Value: 8, Synonyms: []string{"a8", "a08"}},
	{Name: "alarm9", Value: 9, Synonyms: []string{"a9", "a09"}},
	{Name: "alarm10", Value: 10, Synonyms: []string{"a10"}},
	{Name: "alarm11", Value: 11, Synonyms: []string{"a11"}},
	{Name: "alarm12", Value: 12, Synonyms: []string{"a12"}},
	{Name: "alarm13", Value: 13, Synonyms: []string{"a13"}},
	{Name: "bicycle", Value: 14, Synonyms: []string{"bike"}},
	{Name: "car", Value: 15},
	{Name: "cash", Value: 16},
	{Name: "cat", Value: 17},
	{Name: "dog", Value: 18, Synonyms: []string{"dog1", "dog01"}},
	{Name: "dog2", Value: 19, Synonyms: []string{"dog02"}},
	{Name: "energy", Value: 20},
	{Name: "knock-knock", Value: 21, Synonyms: []string{"knock"}},
	{Name: "letter_email", Value: 22, Synonyms: []string{"letter", "email"}},
	{Name: "lose1", Value: 23, Synonyms: []string{"lose01", "lose"}},
	{Name: "lose2", Value: 24, Synonyms: []string{"lose02"}},
	{Name: "negative1", Value: 25, Synonyms: []string{"negative01", "neg01", "neg1", "-"}},
	{Name: "negative2", Value: 26, Synonyms: []string{"negative02", "neg02", "neg2", "--"}},
	{Name: "negative3", Value: 27, Synonyms: []string{"negative03", "neg03", "neg3", "---"}},
	{Name: "negative4", Value: 28, Synonyms: []string{"negative04", "neg04", "neg4", "----"}},
	{Name: "negative5", Value: 29, Synonyms: []string{"negative05", "neg05", "neg5", "-----"}},
	{Name: "notification", Value: 30, Synonyms: []string{"notification1", "notification01", "not01", "not1"}},
	{Name: "notification2", Value: 31, Synonyms: []string{"notification02", "not02", "not2"}},
	{Name: "notification3", Value: 32, Synonyms: []string{"notification03", "not03", "not3"}},
	{Name: "notification4", Value: 33, Synonyms: []string{"notification04", "not04", "not4"}},
	{Name: "open_door", Value: 34, Synonyms: []string{"open", "door"}},
	{Name: "positive1", Value: 35, Synonyms: []string{"positive01", "pos01", "p1", "+"}},
	{Name: "positive2", Value: 36, Synonyms: []string{"positive02", "pos02", "p2", "++"}},
	{Name: "positive3", Value: 37, Synonyms: []string{"positive03", "pos03", "p3", "+++"}},
	{Name: "positive4", Value: 38, Synonyms: []string{"positive04", "pos04", "p4", "++++"}},
	{Name: "positive5", Value: 39, Synonyms: []string{"positive05", "pos05", "p5", "+++++"}},
	{Name: "positive6", Value: 40, Synonyms: []string{"positive06", "pos06", "p6", "++++++"}},
	{Name: "statistic", Value: 41, Synonyms: []string{"stat"}},
	{Name: "thunder", Value: 42},
	{Name: "water1", Value: 43, Synonyms: []string{"water01"}},
	{Name: "water2", Value: 44, Synonyms: []string{"water02"}},
	{Name: "win", Value: 45, Synonyms: []string{"win01", "win1"}},
	{Name: "win2", Value: 46, Synonyms: []string{"win02"}},
	{Name: "wind", Value: 47},
	{Name: "wind_short", Value: 48},
}
