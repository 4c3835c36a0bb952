package pricerule

import (
	"cmp"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"path"
	"reflect"
	"slices"
	"strconv"
	"strings"

	yamlv3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// The bounds of what is plausible: nearly every value beyond them is a misprint.
const (
	maxFactor = 10
	maxPrice  = 1000 // USD per hour; no instance costs as much
	maxLimit  = 1e7  // vCPUs, or USD per hour
	// MaxRules is how many rules a file may have. Each is compared with every offering.
	MaxRules = 1000
)

// Parse reads a price file in YAML or JSON; name is for errors.
func Parse(name string, data []byte) ([]Rule, error) {
	var file struct {
		Rules []stdjson.RawMessage `json:"rules"`
	}
	if at := secondDocument(data); at > 0 {
		return nil, fmt.Errorf("%s: line %d: a second YAML document; want one, with all rules in its list", name, at)
	}
	text, err := yaml.YAMLToJSONStrict(data)
	if err != nil {
		if number := notFinite(data); number != "" {
			return nil, fmt.Errorf("%s: %s; want a finite number", name, number)
		}
		want := "rules: with a list of rules"
		if strings.Contains(err.Error(), "already set in map") {
			want = "each field once"
		}
		return nil, fmt.Errorf("%s: %s; want %s", name, plain(err), want)
	}
	if err := decode(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(file.Rules) > MaxRules {
		return nil, fmt.Errorf("%s: rules: %d; want %d at most", name, len(file.Rules), MaxRules)
	}
	rules, names := make([]Rule, len(file.Rules)), map[string]int{}
	for i := range rules {
		r := &rules[i]
		if err := decode(file.Rules[i], r); err != nil {
			return nil, fmt.Errorf("%s: rules[%d]: %w", name, i, err)
		}
		if err := r.check(); err != nil {
			return nil, fmt.Errorf("%s: rules[%d]%w", name, i, err)
		}
		if first, known := names[r.Name]; known {
			return nil, fmt.Errorf("%s: rules[%d].name: %q is the name of rules[%d]; want another one", name, i, r.Name, first)
		}
		names[r.Name] = i
		r.complete()
	}
	return rules, nil
}

// plain returns the error of the decoder without the stages that it names.
func plain(err error) string {
	reason := err.Error()
	for _, stage := range []string{"error converting YAML to JSON: ", "error unmarshaling JSON: ", "while decoding JSON: ", "json: ",
		"yaml: ", "unmarshal errors:\n"} {
		reason = strings.TrimSpace(strings.TrimPrefix(reason, stage))
	}
	return reason
}

// secondDocument returns the line, from 1, of the separator before a second document that is not empty, which the YAML
// decoder would leave unread; 0 for none.
func secondDocument(data []byte) int {
	begun, separator := false, 0
	for i, line := range strings.Split(string(data), "\n") {
		text := strings.TrimSpace(line)
		switch {
		case line == "---" || strings.HasPrefix(line, "--- "):
			if begun {
				separator = i + 1
			}
		case text == "" || strings.HasPrefix(text, "#"):
		case separator > 0:
			return separator
		default:
			begun = true
		}
	}
	return 0
}

// notFinite returns the path and the text of the first number that is not finite, which YAML can express and JSON cannot;
// "" for none.
func notFinite(data []byte) string {
	var document yamlv3.Node
	if yamlv3.Unmarshal(data, &document) != nil {
		return ""
	}
	return notFiniteIn("", &document)
}

func notFiniteIn(at string, n *yamlv3.Node) string {
	var value float64
	if n.Kind == yamlv3.ScalarNode && n.Decode(&value) == nil && (math.IsNaN(value) || math.IsInf(value, 0)) {
		return at + ": " + n.Value
	}
	for i, inner := range n.Content {
		path := at
		switch {
		case n.Kind == yamlv3.SequenceNode:
			path = fmt.Sprintf("%s[%d]", at, i)
		case n.Kind == yamlv3.MappingNode && i%2 == 1:
			path = strings.TrimPrefix(at+"."+n.Content[i-1].Value, ".")
		}
		if number := notFiniteIn(path, inner); number != "" {
			return number
		}
	}
	return ""
}

// decode reads the file or one rule, and refuses fields that do not exist. Case counts.
func decode(text []byte, into any) error {
	unknown, err := json.UnmarshalStrict(text, into)
	if wrong := new(stdjson.UnmarshalTypeError); errors.As(err, &wrong) {
		article := "a"
		if strings.ContainsAny(wrong.Value[:1], "aeiou") {
			article = "an"
		}
		return fmt.Errorf("%s%s %s; want %s", at(wrong.Field), article, wrong.Value, wanted(wrong.Type))
	}
	if err != nil {
		return err
	}
	if len(unknown) > 0 {
		_, path, _ := strings.Cut(strings.TrimSuffix(unknown[0].Error(), `"`), `"`)
		return fmt.Errorf("%w; want %s", unknown[0], strings.Join(fields(reflect.TypeOf(into).Elem(), path), ", "))
	}
	return nil
}

// at returns the path of a field as the start of an error, "" for the whole.
func at(field string) string {
	if field = strings.TrimPrefix(field, "."); field == "" {
		return ""
	}
	return field + ": "
}

// wanted names the type of a field.
func wanted(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Float64:
		return "a number, such as 0.72"
	case reflect.Bool:
		return "true or false"
	case reflect.String:
		return "text"
	case reflect.Slice:
		return "a list"
	default:
		return "fields and their values"
	}
}

// fields are the names of the fields of the part of a type where the path of a field leads.
func fields(t reflect.Type, path string) []string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	first, rest, nested := strings.Cut(path, ".")
	first, _, _ = strings.Cut(first, "[")
	var names []string
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if nested && name == first {
			return fields(t.Field(i).Type, rest)
		}
		if name != "ofCloud" {
			names = append(names, name)
		}
	}
	return names
}

func (r *Rule) check() error {
	if problems := validation.IsDNS1123Label(r.Name); len(problems) > 0 {
		return fmt.Errorf(".name: %q; want lower case letters, digits and hyphens, such as savings-plan", r.Name)
	}
	for _, list := range []struct {
		field    string
		patterns []string
	}{{"instanceTypes", r.InstanceTypes}, {"families", r.Families}, {"sizes", r.Sizes}, {"zones", r.Zones}} {
		if err := checkPatterns(list.field, list.patterns); err != nil {
			return err
		}
	}
	for i, value := range r.CapacityTypes {
		known := []string{karpv1.CapacityTypeOnDemand, karpv1.CapacityTypeSpot, karpv1.CapacityTypeReserved}
		if !slices.Contains(known, value) {
			return fmt.Errorf(".capacityTypes[%d]: %q; want one of %s", i, value, strings.Join(known, ", "))
		}
	}
	for i, value := range r.Regions {
		if value == "" || strings.ContainsAny(value, "*?[") {
			return fmt.Errorf(".regions[%d]: %q; want the name of a region, such as us-east-1 (zones may be patterns)", i, value)
		}
	}
	if r.OfCloud {
		return fmt.Errorf(".ofCloud: true; want none: it marks rules that the provider states")
	}
	return cmp.Or(r.checkRequirements(), r.checkPrice(), r.checkLimit())
}

func checkPatterns(field string, patterns []string) error {
	for i, pattern := range patterns {
		if _, err := path.Match(pattern, ""); err != nil || pattern == "" {
			return fmt.Errorf(".%s[%d]: %q; want a name or a pattern with * and ?, such as m7g.* for instanceTypes", field, i, pattern)
		}
	}
	return nil
}

// checkRequirements checks what the API server checks of a NodeOverlay: operators, and the number of their values.
func (r *Rule) checkRequirements() error {
	for i, q := range r.Requirements {
		at, values := fmt.Sprintf(".requirements[%d]", i), len(q.Values)
		switch q.Operator {
		case karpv1.OperatorIn, karpv1.OperatorNotIn:
			if values == 0 {
				return fmt.Errorf("%s.values: none; want one or more for %s", at, q.Operator)
			}
		case karpv1.OperatorExists, karpv1.OperatorDoesNotExist:
			if values > 0 {
				return fmt.Errorf("%s.values: %q; want none for %s", at, q.Values, q.Operator)
			}
		case karpv1.OperatorGt, karpv1.OperatorLt, karpv1.OperatorGte, karpv1.OperatorLte:
			if values != 1 || !natural(q.Values[0]) {
				return fmt.Errorf("%s.values: %q; want one integer, zero or greater, for %s", at, q.Values, q.Operator)
			}
		default:
			return fmt.Errorf("%s.operator: %q; want one of In, NotIn, Exists, DoesNotExist, Gt, Lt, Gte, Lte", at, q.Operator)
		}
	}
	return nil
}

func natural(text string) bool {
	n, err := strconv.ParseInt(text, 10, 64)
	return err == nil && n >= 0
}

func (r *Rule) checkPrice() error {
	switch {
	case r.Factor == nil && r.Price == nil && r.Prices == nil:
		return fmt.Errorf(": neither factor nor price nor prices; want one of them, such as factor: 0.72")
	case r.Prices != nil && (r.Factor != nil || r.Price != nil):
		return fmt.Errorf(".prices: beside factor or price; want one of them")
	case r.Prices != nil:
		return r.checkPrices()
	case r.Factor != nil && r.Price != nil:
		return fmt.Errorf(".price: %v beside factor %v; want one of them", *r.Price, *r.Factor)
	case r.Factor != nil && *r.Factor == 0:
		return fmt.Errorf(".factor: 0; want more than 0: free machines have no order; a commitment that is paid anyway has upTo.paid")
	case r.Factor != nil && !within(*r.Factor, maxFactor):
		return fmt.Errorf(".factor: %v; want more than 0, and %d at most, the part of the price that is paid", *r.Factor, maxFactor)
	case r.Price != nil && !within(*r.Price, maxPrice):
		return fmt.Errorf(".price: %v; want more than 0, and %d USD per hour at most", *r.Price, maxPrice)
	}
	return nil
}

func (r *Rule) checkPrices() error {
	if len(r.Prices) == 0 {
		return fmt.Errorf(".prices: none; want USD per hour by instance type, such as {m7g.large: 0.05}")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Prices)) {
		if price := r.Prices[name]; !within(price, maxPrice) {
			return fmt.Errorf(".prices[%s]: %v; want more than 0, and %d USD per hour at most", name, price, maxPrice)
		}
	}
	return nil
}

func (r *Rule) checkLimit() error {
	l := r.UpTo
	switch {
	case l == nil:
		return nil
	case (l.VCPUs == 0) == (l.USDPerHour == 0):
		return fmt.Errorf(".upTo: vCPUs %v and usdPerHour %v; want one of them, above 0", l.VCPUs, l.USDPerHour)
	case l.VCPUs != 0 && !within(l.VCPUs, maxLimit):
		return fmt.Errorf(".upTo.vCPUs: %v; want more than 0, and %.0f at most", l.VCPUs, maxLimit)
	case l.USDPerHour != 0 && !within(l.USDPerHour, maxLimit):
		return fmt.Errorf(".upTo.usdPerHour: %v; want more than 0, and %.0f at most", l.USDPerHour, maxLimit)
	case len(r.CapacityTypes) > 0 && !slices.Equal(r.CapacityTypes, []string{karpv1.CapacityTypeOnDemand}):
		return fmt.Errorf(".capacityTypes: %q with upTo; want on-demand alone, what a commitment pays for", r.CapacityTypes)
	}
	return nil
}

func within(value, most float64) bool { return value > 0 && value <= most }
