package services

import (
	"strings"

	"github.com/caddy-notify/caddy-notify/notifier"
)

// pushsaferSilent stands for the sound of number 0, since 0 is no sound
// chosen.
const pushsaferSilent = 1000

// pushsaferSounds are the sounds by number, with their other names.
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
