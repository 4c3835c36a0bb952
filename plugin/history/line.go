package history

import (
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"time"
)

// line is a line of a log. Its keys are those of this project's controller and of upstream's; encoding/json matches names
// whatever their case.
type line struct {
	Time    moment `json:"time"`
	TS      moment `json:"ts"`
	Message string `json:"message"`
	Msg     string `json:"msg"`
	Log     string `json:"log"` // a line within a line of a log collector
	Logger  string `json:"logger"`

	Controller  string `json:"controller"`
	ReconcileID string `json:"reconcileID"`

	NodeClaim   name `json:"nodeClaim"`
	Machine     name `json:"machine"` // upstream before 0.32
	Node        name `json:"node"`
	NodePool    name `json:"nodePool"`
	Provisioner name `json:"provisioner"` // upstream before 0.32

	InstanceType  string  `json:"instanceType"`
	InstanceType2 string  `json:"instance-type"`
	Zone          string  `json:"zone"`
	CapacityType  string  `json:"capacityType"`
	CapacityType2 string  `json:"capacity-type"`
	ProviderID    string  `json:"providerID"`
	ProviderID2   string  `json:"provider-id"`
	PricePerHour  float64 `json:"pricePerHour"`
	Lifetime      string  `json:"lifetime"`

	Reason   string   `json:"reason"`
	Cause    string   `json:"cause"`
	Error    string   `json:"error"`
	Pods     podField `json:"pods"`
	PodNames []string `json:"podNames"`
	Claims   int      `json:"nodeclaims"`

	CommandID    string      `json:"commandID"`
	CommandID2   string      `json:"command-id"`
	Decision     string      `json:"decision"`
	Method       string      `json:"method"`
	Nodes        []string    `json:"nodes"`
	NodeClaims   stringList  `json:"nodeClaims"`
	Saving       *float64    `json:"savingPerHour"`
	Replacements []string    `json:"replacements"`
	PodCount     int         `json:"pod-count"`
	Disrupted    []disrupted `json:"disrupted-nodes"`
	Replaced     []disrupted `json:"replacement-nodes"`
	NewNodes     int         `json:"replacement-node-count"`
	Kind         string      `json:"messageKind"`
	Notice       string      `json:"notice"`
}

// disrupted is a node of a command of upstream.
type disrupted struct {
	Node         name   `json:"Node"`
	NodeClaim    name   `json:"NodeClaim"`
	CapacityType string `json:"capacity-type"`
	InstanceType string `json:"instance-type"`
}

// moment is a time in the text of a log, or in seconds since 1970.
type moment time.Time

// UnmarshalJSON implements json.Unmarshaler.
func (m *moment) UnmarshalJSON(data []byte) error {
	text := strings.Trim(string(data), `"`)
	if at, is := timeOf(text); is {
		*m = moment(at)
	} else if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 && seconds < 1e11 {
		*m = moment(time.Unix(0, int64(seconds*1e9)).UTC())
	}
	return nil
}

// name is the name of an object: a text, or an object that has it.
type name string

// UnmarshalJSON implements json.Unmarshaler.
func (n *name) UnmarshalJSON(data []byte) error {
	var object struct {
		Name string `json:"name"`
	}
	var text string
	if json.Unmarshal(data, &text) == nil {
		*n = name(text)
	} else if json.Unmarshal(data, &object) == nil {
		*n = name(object.Name)
	}
	return nil
}

// podField is the number of pods, or their names in the form of upstream.
type podField struct {
	count int
	names string
}

// UnmarshalJSON implements json.Unmarshaler.
func (p *podField) UnmarshalJSON(data []byte) error {
	if json.Unmarshal(data, &p.names) != nil {
		_ = json.Unmarshal(data, &p.count) // 0 for another type
	}
	return nil
}

// stringList is a list of texts. Upstream has a number under the same key, in another case.
type stringList []string

// UnmarshalJSON implements json.Unmarshaler.
func (l *stringList) UnmarshalJSON(data []byte) error {
	var list []string
	if json.Unmarshal(data, &list) == nil {
		*l = list
	}
	return nil
}

// timeOf parses the forms of times that log lines have.
func timeOf(text string) (time.Time, bool) {
	for _, layout := range []string{time.RFC3339Nano, "2006-01-02T15:04:05.000Z0700", "2006-01-02 15:04:05.999999999"} {
		if at, err := time.Parse(layout, text); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// parse reads a line. It reports false for what is not a line of a log with a time and a message.
func parse(text string) (*line, bool) {
	if l, is := console(text); is {
		return l, true
	}
	at := strings.IndexByte(text, '{')
	if at < 0 {
		return nil, false
	}
	l := &line{}
	if !decode(text[at:], l) {
		return nil, false
	}
	if l.Message == "" {
		l.Message = l.Msg
	}
	if l.Message == "" && l.Log != "" {
		return parse(strings.TrimSpace(l.Log))
	}
	if l.when().IsZero() {
		l.Time = moment(timeBefore(text[:at]))
	}
	return l, l.Message != "" && !l.when().IsZero()
}

// decode reads the keys of a line. A key with a value of another type is left out.
func decode(text string, into *line) bool {
	var other *json.UnmarshalTypeError
	err := json.Unmarshal([]byte(text), into)
	return err == nil || errors.As(err, &other)
}

func (l *line) when() time.Time {
	if at := time.Time(l.Time); !at.IsZero() {
		return at
	}
	return time.Time(l.TS)
}

// timeBefore returns the time among the words before a line, zero if there is none.
func timeBefore(text string) time.Time {
	words := strings.Fields(text)
	for i, word := range words {
		if at, is := timeOf(word); is {
			return at
		}
		if i > 0 {
			if at, is := timeOf(words[i-1] + " " + word); is {
				return at
			}
		}
	}
	return time.Time{}
}

// levels are those of zap. https://pkg.go.dev/go.uber.org/zap/zapcore#Level
var levels = map[string]bool{"DEBUG": true, "INFO": true, "WARN": true, "ERROR": true, "DPANIC": true, "PANIC": true, "FATAL": true}

// console reads a line of zap's console encoder: time, level, logger, caller, message and an object with the keys, with
// tabs between them. Logger, caller and object may be missing.
func console(text string) (*line, bool) {
	fields := strings.Split(text, "\t")
	for i := 1; i < len(fields); i++ {
		if !levels[fields[i]] {
			continue
		}
		at := timeBefore(lastWord(fields[i-1]))
		rest := fields[i+1:]
		if at.IsZero() || len(rest) == 0 {
			return nil, false
		}
		l := &line{}
		if last := rest[len(rest)-1]; len(rest) > 1 && strings.HasPrefix(last, "{") {
			if !decode(last, l) {
				return nil, false
			}
			rest = rest[:len(rest)-1]
		}
		l.Time, l.Message = moment(at), rest[len(rest)-1]
		if len(rest) > 1 {
			l.Logger = rest[0]
		}
		return l, true
	}
	return nil, false
}

func lastWord(text string) string { return text[strings.LastIndexByte(text, ' ')+1:] }
