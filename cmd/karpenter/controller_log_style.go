package main

import (
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/go-logr/logr"
	"k8s.io/klog/v2"
)

// styled is a log sink that gives every line of the log one style, whichever library writes it. Keys are
// lowerCamelCase, as Kubernetes recommends
// (https://github.com/kubernetes/community/blob/master/contributors/devel/sig-instrumentation/logging.md); an object
// is its name or namespace/name; each key occurs once in a line. Messages of controller-runtime about its own start
// and end have the level debug.
type styled struct {
	logr.LogSink
	// pairs are the keys and values of WithValues, in their final style.
	pairs []any
}

// inOneStyle returns a log whose lines have the style of styled.
func inOneStyle(log logr.Logger) logr.Logger {
	sink := log.GetSink()
	if deeper, can := sink.(logr.CallDepthLogSink); can {
		sink = deeper.WithCallDepth(1) // this frame
	}
	return log.WithSink(styled{LogSink: sink})
}

// debugLevel is the verbosity of lines for debugging.
const debugLevel = 1

// machinery lists the messages that controller-runtime logs for each of its parts when it starts and stops.
var machinery = []string{"Starting EventSource", "Starting Controller", "Starting workers", "Shutdown signal received, waiting for all workers to finish",
	"All workers finished", "starting server", "shutting down server", "Wait completed, proceeding to shutdown the manager"}

// Info implements logr.LogSink.
func (s styled) Info(level int, message string, pairs ...any) {
	if level == 0 && (slices.Contains(machinery, message) || strings.HasPrefix(message, "Stopping and waiting for ")) {
		if level = debugLevel; !s.LogSink.Enabled(level) {
			return
		}
	}
	s.LogSink.Info(level, message, s.with(pairs)...)
}

// Error implements logr.LogSink.
func (s styled) Error(err error, message string, pairs ...any) {
	s.LogSink.Error(err, message, s.with(pairs)...)
}

// WithValues implements logr.LogSink. The values are kept here, because a later value of the same key replaces an
// earlier one.
func (s styled) WithValues(pairs ...any) logr.LogSink { return styled{s.LogSink, s.with(pairs)} }

// WithName implements logr.LogSink.
func (s styled) WithName(name string) logr.LogSink { return styled{s.LogSink.WithName(name), s.pairs} }

// WithCallDepth implements logr.CallDepthLogSink.
func (s styled) WithCallDepth(depth int) logr.LogSink {
	if deeper, can := s.LogSink.(logr.CallDepthLogSink); can {
		return styled{deeper.WithCallDepth(depth), s.pairs}
	}
	return s
}

// with returns the pairs of the log and further ones, each key once.
func (s styled) with(pairs []any) []any {
	all := slices.Clone(s.pairs)
	for i := 0; i+1 < len(pairs); i += 2 {
		key, value := fmt.Sprint(pairs[i]), pairs[i+1]
		if reference, is := value.(klog.ObjectRef); is {
			value = reference.String()
		}
		if spare(all, key, value) {
			continue
		}
		key = lowerCamel(key)
		if at := indexOf(all, key); at >= 0 {
			all[at+1] = value
			continue
		}
		all = append(all, key, value)
	}
	return all
}

// spare reports whether a pair repeats another one or has no information. controller-runtime gives a reconciler's log
// the group and kind of its objects, and the object a second time by name and namespace; sources of events are
// addresses of functions.
func spare(before []any, key string, value any) bool {
	switch key {
	case "controllerGroup", "controllerKind":
		return true
	case "namespace", "name":
		return indexOf(before, "reconcileID") < 0 && indexOf(before, "controller") >= 0
	case "source":
		return strings.HasPrefix(fmt.Sprint(value), "func source: ")
	}
	return false
}

func indexOf(pairs []any, key string) int {
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] == key {
			return i
		}
	}
	return -1
}

// lowerCamel converts plan-id, PlanID and "plan id" to planID, NodeClaim to nodeClaim and EC2NodeClass to
// ec2NodeClass.
func lowerCamel(key string) string {
	words := strings.FieldsFunc(key, func(r rune) bool { return r == '-' || r == '_' || r == ' ' || r == '.' || r == '/' })
	if len(words) == 0 {
		return key
	}
	var b strings.Builder
	b.WriteString(lowerFirst(words[0]))
	for _, word := range words[1:] {
		if word == "id" || word == "uid" || word == "url" {
			b.WriteString(strings.ToUpper(word))
			continue
		}
		first, size := utf8.DecodeRuneInString(word)
		b.WriteRune(unicode.ToUpper(first))
		b.WriteString(word[size:])
	}
	return b.String()
}

// lowerFirst lowercases the leading capitals of the word, except the one that begins a second word: PDBName becomes
// pdbName.
func lowerFirst(word string) string {
	end := strings.IndexFunc(word, unicode.IsLower)
	switch {
	case end == 0:
		return word
	case end < 0:
		return strings.ToLower(word)
	case end == 1:
		return strings.ToLower(word[:1]) + word[1:]
	}
	return strings.ToLower(word[:end-1]) + word[end-1:]
}
