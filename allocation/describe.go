package allocation

import "fmt"

// The codes of those that fit; in a decision they say what became of each.
const (
	CodeOutranked   Code = "outranked"
	CodeNotExamined Code = "not_examined"
	CodeChosen      Code = "chosen"
	CodeSkipped     Code = "skipped"
	CodeStale       Code = "stale"
	CodeLostRace    Code = "lost_race"
)

// CodeUnderEdit is a note beside the reasons: somebody edits the record. It neither rejects nor ranks.
const CodeUnderEdit Code = "under_edit"

// DescribeUnderEdit is the sentence of that note, and what can be done about it.
func DescribeUnderEdit() (sentence, remedy string) {
	return "Somebody is editing its record, its rack or its chassis.", "Nothing: it is sold as it stands in the inventory."
}

// fitting says what became of the servers that fit.
var fitting = map[Code][2]string{
	CodeChosen:      {"It was chosen.", "Nothing: it is reserved."},
	CodeOutranked:   {"It fits, and a smaller or cheaper one, or an equal one that came first, was chosen.", "Nothing: it is free for the next order."},
	CodeSkipped:     {"It fits, and another order had it at that moment.", "Try again shortly."},
	CodeStale:       {"It fitted when the list was made, and no longer did when it was locked.", "Try again shortly."},
	CodeLostRace:    {"It fits, and another order took it a moment earlier.", "Try again shortly."},
	CodeNotExamined: {"It fits, and the walk ended before it was tried.", "Try again shortly."},
}

// Describe returns the sentence of a reason and what can be done about it.
func Describe(reason Reason) (sentence, remedy string) {
	if reason.Code == CodeUnknownAttribute {
		return fmt.Sprintf("Its record does not say what the requirement %q needs to know.", reason.Requirement),
			"Complete the server's record, or leave that requirement out."
	}
	for i := range rules {
		if rules[i].Code == reason.Code && rules[i].Requirement == reason.Requirement {
			return rules[i].Sentence, rules[i].Remedy
		}
	}
	texts := fitting[reason.Code]
	return texts[0], texts[1]
}

// Codes lists every code that a candidate can carry, rejections first, for documents and schemas.
func Codes() []Code {
	codes := []Code{}
	for i := range rules {
		if i == 0 || rules[i].Code != rules[i-1].Code {
			codes = append(codes, rules[i].Code)
		}
	}
	return append(codes, CodeUnknownAttribute, CodeOutranked, CodeSkipped, CodeStale, CodeLostRace, CodeNotExamined, CodeChosen)
}
