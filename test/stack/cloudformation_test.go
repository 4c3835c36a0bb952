package stack

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// template is a CloudFormation template under evaluation.
// https://docs.aws.amazon.com/AWSCloudFormation/latest/TemplateReference/intrinsic-function-reference.html
type template struct {
	t          testing.TB
	o          order
	parameters map[string]string
	sections   map[string]any
}

// nothing is AWS::NoValue: the property is omitted.
type nothing struct{}

// call is an intrinsic function with its argument.
type call struct {
	name     string
	argument any
}

func readTemplate(t testing.TB) map[string]any {
	t.Helper()
	text, err := os.ReadFile(cfnFile)
	if err != nil {
		t.Fatal(err)
	}
	var root yaml.Node
	if err := yaml.Unmarshal(text, &root); err != nil {
		t.Fatalf("reading %s: %v", cfnFile, err)
	}
	return plain(t, root.Content[0]).(map[string]any)
}

// plain converts a YAML node to a value; local tags become calls.
func plain(t testing.TB, n *yaml.Node) any {
	t.Helper()
	var value any
	switch n.Kind {
	case yaml.MappingNode:
		object := map[string]any{}
		for i := 0; i < len(n.Content); i += 2 {
			key := n.Content[i].Value
			if _, twice := object[key]; twice {
				t.Fatalf("line %d: %s is a duplicate", n.Line, key)
			}
			object[key] = plain(t, n.Content[i+1])
		}
		value = object
	case yaml.SequenceNode:
		list := []any{}
		for _, below := range n.Content {
			list = append(list, plain(t, below))
		}
		value = list
	case yaml.ScalarNode:
		value = n.Value
	default:
		t.Fatalf("line %d: CloudFormation does not support aliases", n.Line)
	}
	if name, is := strings.CutPrefix(n.Tag, "!"); is && !strings.HasPrefix(name, "!") {
		return call{name, value}
	}
	return value
}

// cloudformation evaluates the template.
func cloudformation(t testing.TB, o order) account {
	t.Helper()
	x := &template{t: t, o: o, sections: readTemplate(t), parameters: map[string]string{}}
	given := map[string]string{"ClusterName": o.cluster, "Namespace": o.namespace, "ServiceAccount": o.serviceAccount,
		"OIDCProvider": o.oidc, "NodeRoleName": o.nodeRoleName, "QueueName": o.queueName, "Identity": "PodIdentity", "NodeAccess": "AccessEntry"}
	if o.irsa {
		given["Identity"] = "IRSA"
	}
	if o.noAccess {
		given["NodeAccess"] = "None"
	}
	for _, part := range optional() {
		given[part.name] = fmt.Sprint(slices.Contains(o.features, part.name))
	}
	for name, value := range given {
		x.give(name, value)
	}
	for name := range x.sections["Parameters"].(map[string]any) {
		if _, is := given[name]; !is {
			t.Fatalf("%s has the parameter %s, which is unknown to this test", cfnFile, name)
		}
	}
	x.assert()
	return x.account()
}

// give sets a parameter, if the template allows the value.
func (x *template) give(name, value string) {
	declared, is := x.sections["Parameters"].(map[string]any)[name].(map[string]any)
	if !is {
		x.t.Fatalf("%s has no parameter %s", cfnFile, name)
	}
	if allowed, is := declared["AllowedValues"].([]any); is && !slices.Contains(allowed, any(value)) {
		x.t.Fatalf("the parameter %s must be one of %v, not %q", name, allowed, value)
	}
	if pattern, is := declared["AllowedPattern"].(string); is && !regexp.MustCompile(pattern).MatchString(value) {
		x.t.Fatalf("the parameter %s must match %s, not %q", name, pattern, value)
	}
	x.parameters[name] = value
}

// assert evaluates the template's rules.
func (x *template) assert() {
	for name, r := range x.sections["Rules"].(map[string]any) {
		r := r.(map[string]any)
		if !x.eval(r["RuleCondition"]).(bool) {
			continue
		}
		for _, a := range r["Assertions"].([]any) {
			if a := a.(map[string]any); !x.eval(a["Assert"]).(bool) {
				x.t.Fatalf("rule %s: %s", name, a["AssertDescription"])
			}
		}
	}
}

func (x *template) condition(name string) bool {
	of, is := x.sections["Conditions"].(map[string]any)[name]
	if !is {
		x.t.Fatalf("%s has no condition %s", cfnFile, name)
	}
	return x.eval(of).(bool)
}

// eval returns the evaluated value.
func (x *template) eval(value any) any {
	switch v := value.(type) {
	case map[string]any:
		object := map[string]any{}
		for key, below := range v {
			if below := x.eval(below); below != any(nothing{}) {
				object[key] = below
			}
		}
		return object
	case []any:
		list := []any{}
		for _, below := range v {
			if below := x.eval(below); below != any(nothing{}) {
				list = append(list, below)
			}
		}
		return list
	case call:
		return x.call(v)
	}
	return value
}

func (x *template) call(c call) any {
	arguments, _ := c.argument.([]any)
	switch c.name {
	case "Ref":
		return x.ref(c.argument.(string))
	case "GetAtt":
		return x.attribute(c.argument.(string))
	case "Sub":
		return variable.ReplaceAllStringFunc(c.argument.(string), func(of string) string {
			name := of[2 : len(of)-1]
			if strings.Contains(name, ".") {
				return x.attribute(name)
			}
			return fmt.Sprint(x.ref(name))
		})
	case "Equals":
		return x.eval(arguments[0]) == x.eval(arguments[1])
	case "Not":
		return !x.eval(arguments[0]).(bool)
	case "If":
		if x.condition(arguments[0].(string)) {
			return x.eval(arguments[1])
		}
		return x.eval(arguments[2])
	}
	x.t.Fatalf("this test does not support the function %s", c.name)
	return nil
}

var variable = regexp.MustCompile(`\$\{[^}!]+\}`)

// ref returns the value of Ref: for a role and a queue policy the name, for a queue the URL, for a policy the ARN.
func (x *template) ref(name string) any {
	switch name {
	case "AWS::Partition":
		return x.o.partition
	case "AWS::URLSuffix":
		return x.o.suffix
	case "AWS::Region":
		return x.o.region
	case "AWS::AccountId":
		return accountID
	case "AWS::NoValue":
		return nothing{}
	}
	if value, is := x.parameters[name]; is {
		return value
	}
	kind, _ := x.resource(name)
	switch kind {
	case "AWS::IAM::Role":
		return x.physical(name, "RoleName")
	case "AWS::IAM::ManagedPolicy":
		return fmt.Sprintf("arn:%s:iam::%s:policy/%s", x.o.partition, accountID, name)
	case "AWS::SQS::Queue":
		return "https://queue/" + x.physical(name, "QueueName")
	}
	x.t.Fatalf("this test does not support Ref for %s, of type %s", name, kind)
	return nil
}

// attribute returns the value of GetAtt.
func (x *template) attribute(path string) string {
	name, attribute, _ := strings.Cut(path, ".")
	kind, _ := x.resource(name)
	switch kind + "." + attribute {
	case "AWS::IAM::Role.Arn":
		return fmt.Sprintf("arn:%s:iam::%s:role/%s", x.o.partition, accountID, x.physical(name, "RoleName"))
	case "AWS::SQS::Queue.Arn":
		return fmt.Sprintf("arn:%s:sqs:%s:%s:%s", x.o.partition, x.o.region, accountID, x.physical(name, "QueueName"))
	case "AWS::SQS::Queue.QueueName":
		return x.physical(name, "QueueName")
	case "AWS::Events::Rule.Arn":
		return fmt.Sprintf("arn:%s:events:%s:%s:rule/%s", x.o.partition, x.o.region, accountID, x.physical(name, "Name"))
	}
	x.t.Fatalf("this test does not support %s of type %s", path, kind)
	return ""
}

// resource returns a resource's type and its properties, not evaluated.
func (x *template) resource(name string) (kind string, properties map[string]any) {
	declared, is := x.sections["Resources"].(map[string]any)[name].(map[string]any)
	if !is {
		x.t.Fatalf("%s has no resource %s", cfnFile, name)
	}
	properties, _ = declared["Properties"].(map[string]any)
	return declared["Type"].(string), properties
}

// physical returns the name that a resource is given, else its logical id in place of the name that CloudFormation
// generates.
func (x *template) physical(name, property string) string {
	_, properties := x.resource(name)
	if given, is := x.eval(properties[property]).(string); is {
		return given
	}
	return name
}

// made returns the evaluated properties of the resources of a type, by name.
func (x *template) made(kind string) map[string]map[string]any {
	all := map[string]map[string]any{}
	for name, declared := range x.sections["Resources"].(map[string]any) {
		only, is := declared.(map[string]any)["Condition"].(string)
		if of, properties := x.resource(name); of == kind && (!is || x.condition(only)) {
			all[name] = x.eval(properties).(map[string]any)
		}
	}
	return all
}
