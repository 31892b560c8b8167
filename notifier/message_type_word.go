package notifier

import "strings"

// typeWords are the words with which alerting programs name the state or the
// severity of an alert, by the type that they mean.
var typeWords = wordsByType(map[Type]string{
	Info: "info information informational notice note debug trace normal none unknown started start running queued pending scheduled " +
		"in_progress waiting created opened updated paused skipped neutral low verbose log default",
	Success: "success successful succeeded ok okay up resolved resolve recovered recovery fixed healthy online passed pass completed complete " +
		"done finished good green available closed cleared clear inactive merged",
	Warning: "warning warn degraded minor medium moderate average yellow unstable partial stale late grace cancelled canceled attention " +
		"maintenance timed_out action_required",
	Failure: "failure fail failed failing firing alerting alert alarm critical crit error err errored danger down offline unhealthy problem " +
		"fatal emergency emerg panic disaster major high severe red broken crash crashed dead missing unavailable unreachable timeout rejected " +
		"triggered startup_failure p1 sev1",
})

func wordsByType(lists map[Type]string) map[string]Type {
	out := map[string]Type{}
	for t, words := range lists {
		for word := range strings.FieldsSeq(words) {
			out[word] = t
		}
	}
	return out
}

// TypeOfWord returns the type that a common word of alerting means, ignoring
// case and white space around it: failure for "firing" or "critical", success
// for "resolved" or "ok", warning for "degraded". Spaces and hyphens within it
// count as underscores. An empty word is [Info]. If the word is unknown, it
// returns Info and false.
func TypeOfWord(word string) (t Type, known bool) {
	word = strings.ToLower(strings.TrimSpace(word))
	if word == "" {
		return Info, true
	}
	if t, known = typeWords[strings.NewReplacer(" ", "_", "-", "_").Replace(word)]; known {
		return t, true
	}
	return Info, false
}

// TypeOfPriority returns the type for a priority of ntfy: a number from 1 to 5,
// or its name. Any other text is read by [TypeOfWord].
func TypeOfPriority(priority string) (t Type, known bool) {
	switch strings.ToLower(strings.TrimSpace(priority)) {
	case "1", "2", "3", "min", "low", "default":
		return Info, true
	case "4", "high":
		return Warning, true
	case "5", "max", "urgent":
		return Failure, true
	}
	return TypeOfWord(priority)
}
