package stack

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/hcl/v2/hclsyntax"
	"github.com/zclconf/go-cty/cty"
)

// attributes are the allowed attributes of each resource type: others would not be checked. All types belong to the
// provider hashicorp/aws. tags are the user's.
var attributes = map[string][]string{
	"aws_iam_role":                     {"name", "assume_role_policy", "tags"},
	"aws_iam_policy":                   {"name_prefix", "description", "policy", "tags"},
	"aws_iam_role_policy_attachment":   {"role", "policy_arn"},
	"aws_eks_access_entry":             {"cluster_name", "principal_arn", "type", "tags"},
	"aws_eks_pod_identity_association": {"cluster_name", "namespace", "service_account", "role_arn", "tags"},
	"aws_sqs_queue":                    {"name", "message_retention_seconds", "sqs_managed_sse_enabled", "tags"},
	"aws_sqs_queue_policy":             {"queue_url", "policy"},
	"aws_cloudwatch_event_rule":        {"name_prefix", "description", "event_pattern", "tags"},
	"aws_cloudwatch_event_target":      {"rule", "target_id", "arn"},
}

// resource returns a resource, or a map of them if it has for_each, a list if it has count.
func (m *module) resource(address string) cty.Value {
	m.t.Helper()
	block := m.blocks[address]
	for name := range block.Body.Attributes {
		if !slices.Contains(append(attributes[block.Labels[0]], "for_each", "count"), name) {
			m.t.Fatalf("%s: the attribute %s is not checked", address, name)
		}
	}
	for _, below := range block.Body.Blocks {
		for _, condition := range below.Body.Blocks {
			if m.eval(condition.Body.Attributes["condition"].Expr, nil).False() {
				m.t.Fatalf("%s: %s", address, m.eval(condition.Body.Attributes["error_message"].Expr, nil).AsString())
			}
		}
	}
	if count := block.Body.Attributes["count"]; count != nil {
		if n, _ := m.eval(count.Expr, nil).AsBigFloat().Int64(); n == 0 {
			return cty.EmptyTupleVal
		}
		return cty.TupleVal([]cty.Value{m.instance(address, block, nil)})
	}
	each := block.Body.Attributes["for_each"]
	if each == nil {
		return m.instance(address, block, nil)
	}
	all := map[string]cty.Value{}
	for it := m.eval(each.Expr, nil).ElementIterator(); it.Next(); {
		key, value := it.Element()
		if key.Type() != cty.String {
			key = value
		}
		own := map[string]cty.Value{"each": cty.ObjectVal(map[string]cty.Value{"key": key, "value": value})}
		all[key.AsString()] = m.instance(address, block, own)
	}
	return cty.ObjectVal(all)
}

// instance returns one resource: its attributes, and those that AWS sets. A generated name begins with the given
// prefix.
func (m *module) instance(address string, block *hclsyntax.Block, own map[string]cty.Value) cty.Value {
	m.t.Helper()
	made := map[string]cty.Value{}
	for name, attribute := range block.Body.Attributes {
		if name != "for_each" && name != "count" {
			made[name] = m.eval(attribute.Expr, own)
		}
	}
	name := address
	if prefix, is := made["name_prefix"]; is {
		name = prefix.AsString() + "20261120120000000000000001" // as long as the provider's suffix
		made["name"] = cty.StringVal(name)
	} else if given, is := made["name"]; is {
		name = given.AsString()
	}
	for kind, form := range map[string]string{
		"aws_iam_role":              "arn:%[1]s:iam::%[3]s:role/%[4]s",
		"aws_iam_policy":            "arn:%[1]s:iam::%[3]s:policy/%[4]s",
		"aws_sqs_queue":             "arn:%[1]s:sqs:%[2]s:%[3]s:%[4]s",
		"aws_cloudwatch_event_rule": "arn:%[1]s:events:%[2]s:%[3]s:rule/%[4]s",
	} {
		if kind == block.Labels[0] {
			made["arn"] = cty.StringVal(fmt.Sprintf(form, m.o.partition, m.o.region, accountID, name))
		}
	}
	if block.Labels[0] == "aws_sqs_queue" {
		made["url"] = cty.StringVal("https://queue/" + name)
	}
	return cty.ObjectVal(made)
}

// all returns the instances of a type, in the order of their addresses and keys.
func (m *module) all(kind string) []map[string]cty.Value {
	m.t.Helper()
	var instances []map[string]cty.Value
	for _, address := range slices.Sorted(slices.Values(m.resources)) {
		if of, _, _ := strings.Cut(address, "."); of != kind {
			continue
		}
		body := m.blocks[address].Body
		value := m.value(address)
		if body.Attributes["for_each"] == nil && body.Attributes["count"] == nil {
			instances = append(instances, value.AsValueMap())
			continue
		}
		for it := value.ElementIterator(); it.Next(); {
			_, instance := it.Element()
			instances = append(instances, instance.AsValueMap())
		}
	}
	return instances
}

// terraform evaluates the module.
func terraform(t testing.TB, o order) account {
	t.Helper()
	m := parseModule(t, o)
	given := map[string]cty.Value{"cluster_name": cty.StringVal(o.cluster), "namespace": cty.StringVal(o.namespace), "service_account": cty.StringVal(o.serviceAccount)}
	if o.irsa {
		given["identity"], given["oidc_provider"] = cty.StringVal("irsa"), cty.StringVal(o.oidc)
	}
	if o.noAccess {
		given["node_access"] = cty.StringVal("none")
	}
	if o.nodeRoleName != "" {
		given["node_role_name"], given["queue_name"] = cty.StringVal(o.nodeRoleName), cty.StringVal(o.queueName)
	}
	given["features"] = cty.SetValEmpty(cty.String)
	for _, name := range o.features {
		given["features"] = cty.SetVal(append(given["features"].AsValueSlice(), cty.StringVal(name)))
	}
	if refusals := m.give(given); len(refusals) > 0 {
		t.Fatal(refusals)
	}
	return m.account()
}

// account returns the account that the module creates.
func (m *module) account() account {
	m.t.Helper()
	for _, address := range m.resources {
		if kind, _, _ := strings.Cut(address, "."); attributes[kind] == nil {
			m.t.Fatalf("%s: this test does not check those", address)
		}
	}
	var a account
	roles := m.all("aws_iam_role")
	if len(roles) != 2 {
		m.t.Fatalf("there are %d roles, want two", len(roles))
	}
	a.controller, a.node = m.role(roles[0]), m.role(roles[1])
	for _, made := range m.all("aws_eks_pod_identity_association") {
		a.association = map[string]string{"cluster": of(made["cluster_name"]), "namespace": of(made["namespace"]), "service account": of(made["service_account"])}
		m.same("the association's role", made["role_arn"], roles[0]["arn"])
	}
	for _, made := range m.all("aws_eks_access_entry") {
		a.access = map[string]string{"cluster": of(made["cluster_name"]), "type": of(made["type"])}
		m.same("who has access", made["principal_arn"], roles[1]["arn"])
	}
	made := m.all("aws_sqs_queue")[0]
	a.queue = queue{name: of(made["name"]), retention: of(made["message_retention_seconds"]), encrypted: of(made["sqs_managed_sse_enabled"]), arn: of(made["arn"])}
	only := m.all("aws_sqs_queue_policy")[0]
	m.same("the queue of the policy", only["queue_url"], made["url"])
	a.queue.policy = document(m.t, of(only["policy"]))
	targets := map[string][]string{}
	for _, target := range m.all("aws_cloudwatch_event_target") {
		targets[of(target["rule"])] = append(targets[of(target["rule"])], of(target["arn"]))
	}
	for _, made := range m.all("aws_cloudwatch_event_rule") {
		a.rules = append(a.rules, rule{name: of(made["name"]), arn: of(made["arn"]),
			pattern: document(m.t, of(made["event_pattern"])).(map[string]any), targets: targets[of(made["name"])]})
	}
	return a
}

func (m *module) role(made map[string]cty.Value) role {
	r := role{name: of(made["name"]), trust: document(m.t, of(made["assume_role_policy"]))}
	own := map[string]string{}
	for _, policy := range m.all("aws_iam_policy") {
		own[of(policy["arn"])] = of(policy["policy"])
	}
	for _, attached := range m.all("aws_iam_role_policy_attachment") {
		if of(attached["role"]) != r.name {
			continue
		}
		if policy, is := own[of(attached["policy_arn"])]; is {
			r.policies = append(r.policies, policy)
		} else {
			r.managed = append(r.managed, of(attached["policy_arn"]))
		}
	}
	return r
}

func (m *module) same(what string, have, want cty.Value) {
	m.t.Helper()
	if !have.RawEquals(want) {
		m.t.Errorf("%s is %#v, want %#v", what, have, want)
	}
}

// of returns a value as text.
func of(v cty.Value) string {
	switch {
	case v == cty.NilVal || v.IsNull():
		return ""
	case v.Type() == cty.Bool:
		return fmt.Sprint(v.True())
	case v.Type() == cty.Number:
		return v.AsBigFloat().String()
	}
	return v.AsString()
}

// TestModule checks the outputs, the lengths of all names, and the inputs that the module rejects.
func TestModule(t *testing.T) {
	m := parseModule(t, usual("prod"))
	m.give(map[string]cty.Value{"cluster_name": cty.StringVal("prod")})
	have := map[string]string{}
	for address, block := range m.blocks {
		if block.Type == "output" {
			have[strings.TrimPrefix(address, "output.")] = of(m.eval(block.Body.Attributes["value"].Expr, nil))
		}
	}
	want := map[string]string{"node_role_name": "KarpenterNodeRole-prod", "queue_name": "prod", "controller_role_arn": "arn:aws:iam::" + accountID + ":role/KarpenterController-prod"}
	if !maps.Equal(have, want) {
		t.Errorf("the outputs are %v, want %v", have, want)
	}
	for kind, most := range map[string]int{"aws_cloudwatch_event_rule": 64, "aws_iam_policy": 128} {
		for _, made := range m.all(kind) {
			if name := of(made["name"]); len(name) > most {
				t.Errorf("%s has a name of %d characters, %d at most: %s", kind, len(name), most, name)
			}
		}
	}
	for name, given := range map[string]map[string]cty.Value{
		"begins with":        {"cluster_name": cty.StringVal("-prod")},
		"pod-identity or":    {"cluster_name": cty.StringVal("prod"), "identity": cty.StringVal("IRSA")},
		"without https://":   {"cluster_name": cty.StringVal("prod"), "oidc_provider": cty.StringVal("https://oidc.eks.eu-west-1.amazonaws.com/id/A")},
		"features are of":    {"cluster_name": cty.StringVal("prod"), "features": cty.SetVal([]cty.Value{cty.StringVal("Teleport")})},
		"access-entry or no": {"cluster_name": cty.StringVal("prod"), "node_access": cty.StringVal("")},
	} {
		if refusals := parseModule(t, usual("prod")).give(given); len(refusals) != 1 || !strings.Contains(refusals[0], name) {
			t.Errorf("%v is refused with %q, want one that contains %q", given, refusals, name)
		}
	}
}
