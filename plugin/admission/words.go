package admission

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// findings holds what is wrong with one object.
type findings struct {
	meta     *metav1.ObjectMeta // the readable part of its metadata
	refusals []Refusal
}

func (f *findings) add(path, problem string) {
	if r := (Refusal{path, problem}); !slices.Contains(f.refusals, r) {
		f.refusals = append(f.refusals, r)
	}
}

// refuse adds a finding of a schema or of the rules for metadata. One fault can break several parts of a schema
// (alternatives, and their parts): only the first finding counts.
func (f *findings) refuse(err *field.Error) {
	path := strings.TrimPrefix(err.Field, "<nil>")
	if err.Type == field.ErrorTypeInvalid && alternatives.MatchString(err.Detail) {
		if slices.ContainsFunc(f.refusals, func(r Refusal) bool { return strings.HasPrefix(r.Field, path) }) {
			return
		}
	}
	if slices.ContainsFunc(f.refusals, func(r Refusal) bool { return r.Field == path && path != "" }) {
		return
	}
	f.add(path, words(err))
}

// alternatives matches what a schema reports in addition to the faults of its parts.
var alternatives = regexp.MustCompile(`must validate (one and only one|at least one|all the) schema`)

// phrases translates messages of a schema. The patterns match the ends of messages of the library kube-openapi,
// package validation/errors.
var phrases = []struct {
	says *regexp.Regexp
	ours string // follows "is VALUE, "
}{
	{regexp.MustCompile(`should be less than or equal to (\S+)$`), "want $1 or less"},
	{regexp.MustCompile(`should be greater than or equal to (\S+)$`), "want $1 or more"},
	{regexp.MustCompile(`should be less than (\S+)$`), "want less than $1"},
	{regexp.MustCompile(`should be greater than (\S+)$`), "want more than $1"},
	{regexp.MustCompile(`should be a multiple of (\S+)$`), "want a multiple of $1"},
	{regexp.MustCompile(`should be at least (\S+) chars long$`), "want $1 characters or more"},
	{regexp.MustCompile(`should have at least (\S+) (?:items|properties)$`), "want $1 items or more"},
	{regexp.MustCompile(`shouldn't contain duplicates$`), "want each item once"},
}

var (
	patterned = regexp.MustCompile(`should match '(.*)'$`)
	typed     = regexp.MustCompile(`must be of type ([a-z,]+)(?:: "(.*)")?$`)
	example   = regexp.MustCompile(`(?s) \(e\.g\. .*$`)
)

// words returns what is wrong as a sentence that begins with the field.
func words(err *field.Error) string {
	switch err.Type {
	case field.ErrorTypeRequired:
		return "is required"
	case field.ErrorTypeNotSupported:
		return "is " + shown(err.BadValue) + ", want " + strings.ReplaceAll(strings.TrimPrefix(err.Detail, "supported values: "), `"`, "")
	case field.ErrorTypeTooLong, field.ErrorTypeTooMany, field.ErrorTypeForbidden:
		return err.ErrorBody()
	case field.ErrorTypeDuplicate:
		return shown(err.BadValue) + " is a duplicate, want each item once"
	case field.ErrorTypeTypeInvalid:
		if m := typed.FindStringSubmatch(err.Detail); m != nil {
			return "is of type " + cmp.Or(m[2], typeOf(err.BadValue)) + ", want " + article(m[1])
		}
	}
	if m := patterned.FindStringSubmatch(err.Detail); m != nil {
		return "is " + shown(err.BadValue) + ", want " + cmp.Or(Form(m[1]), "a value that matches "+m[1])
	}
	for _, p := range phrases {
		if m := p.says.FindStringSubmatchIndex(err.Detail); m != nil {
			return "is " + shown(err.BadValue) + ", " + string(p.says.ExpandString(nil, p.ours, err.Detail, m))
		}
	}
	return valued(err.BadValue, example.ReplaceAllString(err.Detail, ""))
}

// ruleWords returns a sentence about a rule that does not hold. The message of the rule is defined in api/crds and
// includes the correction; of a long list of names, it shows those that resemble the last name of the path.
func ruleWords(err *field.Error, path string) string {
	name, isText := err.BadValue.(string)
	if !isText {
		name = strings.TrimSuffix(path[strings.LastIndexByte(path, '[')+1:], "]")
	}
	detail := err.Detail
	if m := allowedNames.FindStringSubmatch(detail); m != nil {
		all := strings.Split(m[2], ", ")
		if few := karpv1.Resembling(name[strings.LastIndexByte(name, '/')+1:], all); len(few) < len(all) {
			detail = fmt.Sprintf("%s %d names %s, such as %s", m[1], len(all), m[3], strings.Join(few, ", "))
		}
	}
	return valued(err.BadValue, detail)
}

// allowedNames matches the messages of rules that list the allowed labels of a domain.
var allowedNames = regexp.MustCompile(`^(of the domain \S+ only) (\S+(?:, \S+)*) (can be \w+)$`)

// valued returns a text about a value, preceded by the value if that is short enough to be shown.
func valued(value any, text string) string {
	v := shown(value)
	if v == "" || strings.Contains(text, strings.Trim(v, `"`)) {
		return text
	}
	return "is " + v + ": " + text
}

// shown returns a scalar as JSON, and an empty string for any other value.
func shown(value any) string {
	switch value.(type) {
	case nil, map[string]any, []any, field.OmitValueType:
		return ""
	}
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return fmt.Sprint(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// typeOf returns the name of a JSON type.
func typeOf(value any) string {
	switch value := value.(type) {
	case nil:
		return "null"
	case map[string]any:
		return "object"
	case []any:
		return "array"
	case string:
		return "string"
	case bool:
		return "boolean"
	case float64:
		if value != float64(int64(value)) {
			return "number"
		}
	}
	return "integer"
}

func article(noun string) string {
	if strings.ContainsAny(noun[:1], "aeiou") {
		return "an " + noun
	}
	return "a " + noun
}

// Form describes a pattern of the schemas in api/crds in words. It returns an empty string for other patterns.
func Form(pattern string) string { return forms[pattern] }

var forms = map[string]string{
	`^(([0-9]+(s|m|h))+|Never)$`:                    "a duration such as 30s, 5m or 1h30m, or Never",
	`^([0-9]+(s|m|h))+$`:                            "a duration such as 30s, 5m or 1h30m",
	`^((100|[0-9]{1,2})%|[0-9]+)$`:                  "a number of nodes or a percentage such as 10%",
	`^((([0-9]+(h|m))|([0-9]+h[0-9]+m))(0s)?)$`:     "a duration of whole minutes such as 30m or 1h30m",
	`^(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?$`: "letters, digits, -, _ and ., beginning and ending with a letter or digit",
	`^(@(annually|yearly|monthly|weekly|daily|midnight|hourly))|((.+)\s(.+)\s(.+)\s(.+)\s(.+))$`: "a cron schedule such as 0 9 * * mon-fri, or @daily",
	`^[^/]*$`:            "a group without a slash",
	`^[0-9]{12}$`:        "the twelve digits of an AWS account",
	`^ami-[0-9a-z]+$`:    "an id such as ami-0123456789abcdef0",
	`^sg-[0-9a-z]+$`:     "an id such as sg-0123456789abcdef0",
	`^subnet-[0-9a-z]+$`: "an id such as subnet-0123456789abcdef0",
	`^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?[0-9]{1,3}))?$`:                     "a quantity such as 100, 500m or 64Gi",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$`:   "a name such as team or example.com/team",
	`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`: "a name such as team or example.com/team",
}
