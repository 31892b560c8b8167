package services

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// pushsaferSilent is the value for sound number 0, because the value 0 means that
// no sound is chosen.
const pushsaferSilent = 1000

// pushsaferSounds returns the sounds, ordered by number, with their synonyms.
func pushsaferSounds() []notifier.Choice {
	names := strings.Fields(`silent|0 ahem applause arrow baby bell bicycle|bike boing buzzer camera carhorn|horn
		cashregister chime creakydoor cuckooclock|cuckoo disconnect dog doorbell fanfare gunshot honk jawharp morse
		electric radiotuner sirens militarytrumpets|military|trumpets ufo whahwhah goodbye|goodye hello no okay|ok
		ooohhhweee warning|warn welcome yeah yes beep|beep1 weee|wee cutinout flickglass whah laser windchime echo
		zipper hihat beep2 beep3 beep4 alarmarmed|armed alarmdisarmed|disarmed backupready doorclosed|dclosed
		dooropen|dopen windowclosed|wclosed windowopen|wopen lighton|lon lightoff|loff doorbellrang`)
	choices := make([]notifier.Choice, len(names))
	for i, n := range names {
		synonyms := strings.Split(n, "|")
		choices[i] = notifier.Choice{Name: synonyms[0], Value: i, Synonyms: synonyms[1:]}
	}
	choices[0].Value = pushsaferSilent
	return choices
}
