package aws

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	root         = "../../.." // of the repository
	services     = "github.com/aws/aws-sdk-go-v2/service/"
	policyFile   = root + "/docs/aws-iam-policy.json"
	optionalFile = root + "/docs/aws-iam-policy-optional.json"
)

// renamed maps operations to permissions with a different name.
var renamed = map[string]string{"sqs:DeleteMessageBatch": "sqs:DeleteMessage",
	"arczonalshift:GetManagedResource": "arc-zonal-shift:GetManagedResource"}

// implied are permissions that AWS requires for other calls.
// https://docs.aws.amazon.com/service-authorization/latest/reference/list_awsidentityandaccessmanagementiam.html
var implied = map[string]string{
	"iam:CreateInstanceProfile": "iam:TagInstanceProfile", // because it is created with tags
	"ec2:CreateFleet":           "iam:PassRole",           // because its instances have a role
}

// made returns the permissions for every request that the program makes, found by the places where it constructs the
// input of an operation.
func made(t *testing.T) []string {
	t.Helper()
	needed := map[string]bool{}
	err := filepath.WalkDir(root, func(file string, entry fs.DirEntry, err error) error {
		name := entry.Name()
		switch {
		case err != nil:
			return err
		case entry.IsDir() && (name == "awssim" || name == "testdata" || name == ".git" || filepath.Dir(file) == root && (name == "test" || name == "tools" || name == "sandbox")):
			return filepath.SkipDir
		case !entry.IsDir() && strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go"):
			return inputs(file, needed)
		}
		return nil
	})
	check(t, err)
	for operation, action := range implied {
		if needed[operation] {
			needed[action] = true
		}
	}
	return slices.Sorted(maps.Keys(needed))
}

// inputs adds the permissions for the requests in a file.
func inputs(file string, needed map[string]bool) error {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	imported := map[string]string{}
	for _, i := range parsed.Imports {
		if service, ours := strings.CutPrefix(strings.Trim(i.Path.Value, `"`), services); ours && !strings.Contains(service, "/") {
			imported[path.Base(service)] = service
		}
	}
	ast.Inspect(parsed, func(n ast.Node) bool {
		literal, is := n.(*ast.CompositeLit)
		if !is {
			return true
		}
		if selector, is := literal.Type.(*ast.SelectorExpr); is {
			from, _ := selector.X.(*ast.Ident)
			operation, input := strings.CutSuffix(selector.Sel.Name, "Input")
			if from != nil && imported[from.Name] != "" && input {
				action := imported[from.Name] + ":" + operation
				if other := renamed[action]; other != "" {
					action = other
				}
				needed[action] = true
			}
		}
		return true
	})
	return nil
}

// declared returns the operations in the packages' own interfaces.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	operations := map[string]bool{}
	for _, file := range []string{"discovery/sources.go", "class/dryrun.go", "launch/call.go", "upkeep/types.go",
		"upkeep/prices.go", "interruption/call.go", "commitment/reader.go", "commitment/plans.go",
		"zonalshift/zonalshift.go"} {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		check(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if of, is := n.(*ast.InterfaceType); is {
				for _, method := range of.Methods.List {
					for _, name := range method.Names {
						operations[name.Name] = true
					}
				}
			}
			return true
		})
	}
	return operations
}

type policy struct {
	Statement []struct {
		Sid       string
		Effect    string
		Action    list
		Resource  list
		Condition map[string]map[string]list
	}
}

// list is one string or several.
type list []string

func (l *list) UnmarshalJSON(text []byte) error {
	var one string
	if json.Unmarshal(text, &one) == nil {
		*l = list{one}
		return nil
	}
	return json.Unmarshal(text, (*[]string)(l))
}

func readPolicy(t *testing.T, file string) policy {
	t.Helper()
	text, err := os.ReadFile(file)
	check(t, err)
	var read policy
	check(t, json.Unmarshal(text, &read))
	for _, s := range read.Statement {
		if s.Effect != "Allow" {
			t.Errorf("%s: %s: %s", file, s.Sid, s.Effect)
		}
	}
	return read
}

// actionsOf returns the sorted actions of features.
func actionsOf(features []Feature) []string {
	all := map[string]bool{}
	for _, f := range features {
		for _, action := range f.Actions {
			all[action] = true
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// TestFeatures checks that the features need exactly the requests that the program makes.
func TestFeatures(t *testing.T) {
	needed := made(t)
	if diff := cmp.Diff(needed, actionsOf(Features())); diff != "" {
		t.Errorf("the program's requests and Features() differ -requests +features:\n%s", diff)
	}
	operations := map[string]bool{}
	for _, action := range needed {
		operations[action[strings.Index(action, ":")+1:]] = true
	}
	operations["DeleteMessageBatch"] = operations["DeleteMessage"]
	for operation := range declared(t) {
		if !operations[operation] {
			t.Errorf("an interface has %s, but no code makes its input: the scan misses the call, or the operation is unused", operation)
		}
	}
	if len(declared(t)) < 20 {
		t.Errorf("only %d operations are declared: the test reads the wrong files", len(declared(t)))
	}
	by := map[string]string{}
	for _, f := range Features() {
		if f.Name == "" || len(f.Actions) == 0 || !slices.IsSorted(f.Actions) || f.Statement != "" && f.Setting == "" {
			t.Errorf("%+v: want a name, sorted actions, and a setting for what is optional", f)
		}
		for _, action := range f.Actions {
			if by[action] != "" {
				t.Errorf("%s belongs to %s and %s", action, by[action], f.Name)
			}
			by[action] = f.Name
		}
	}
}

// TestPolicy checks that the documented permissions are exactly those of the features: the default policy those of
// features without a statement of their own, and the optional one a statement for each other feature.
func TestPolicy(t *testing.T) {
	allowed := map[string]bool{}
	for _, s := range readPolicy(t, policyFile).Statement {
		for _, action := range s.Action {
			allowed[action] = true
		}
	}
	basic := slices.DeleteFunc(Features(), func(f Feature) bool { return f.Statement != "" })
	if diff := cmp.Diff(actionsOf(basic), slices.Sorted(maps.Keys(allowed))); diff != "" {
		t.Errorf("-features +%s:\n%s", policyFile, diff)
	}
	optional, want := map[string][]string{}, map[string][]string{}
	for _, s := range readPolicy(t, optionalFile).Statement {
		optional[s.Sid] = slices.Sorted(slices.Values(s.Action))
	}
	for _, f := range Features() {
		if f.Statement != "" {
			want[f.Statement] = f.Actions
		}
	}
	if diff := cmp.Diff(want, optional); diff != "" {
		t.Errorf("-features +%s:\n%s", optionalFile, diff)
	}
}

// TestFeaturesAreDocumented checks that docs/aws.md has a row for each feature, with its setting, its actions and the
// policy that allows them.
func TestFeaturesAreDocumented(t *testing.T) {
	text, err := os.ReadFile(root + "/docs/aws.md")
	check(t, err)
	_, section, _ := strings.Cut(string(text), "\n### Permissions by feature\n")
	section, _, _ = strings.Cut(section, "\n#")
	var rows, want []string
	for line := range strings.Lines(section) {
		if row := strings.ReplaceAll(strings.TrimSpace(line), "`", ""); strings.HasPrefix(row, "| ") && strings.Contains(row, ":") {
			rows = append(rows, row)
		}
	}
	for _, f := range Features() {
		allowed := f.Statement
		if allowed == "" {
			allowed = "default"
		}
		setting := f.Setting
		if setting == "" {
			setting = "always"
		}
		want = append(want, "| "+strings.Join([]string{f.Name, setting, allowed, strings.Join(f.Actions, ", ")}, " | ")+" |")
	}
	if diff := cmp.Diff(want, rows); diff != "" {
		t.Errorf("-Features() +docs/aws.md:\n%s", diff)
	}
}

// TestPolicyIsScoped checks that every permission to change something is restricted to the cluster's tags or to one
// resource. Only reading is unrestricted.
func TestPolicyIsScoped(t *testing.T) {
	for _, s := range slices.Concat(readPolicy(t, policyFile).Statement, readPolicy(t, optionalFile).Statement) {
		everything := slices.ContainsFunc(s.Resource, func(r string) bool { return strings.HasSuffix(r, "/*") || r == "*" })
		tagged := false
		for _, operator := range s.Condition {
			for key, values := range operator {
				tagged = tagged || strings.Contains(key, "Tag/kubernetes.io/cluster/${CLUSTER}") && slices.Equal(values, list{"owned"})
			}
		}
		for _, action := range s.Action {
			_, verb, _ := strings.Cut(action, ":")
			reads := strings.HasPrefix(verb, "Describe") || strings.HasPrefix(verb, "Get") || strings.HasPrefix(verb, "List")
			launches := verb == "RunInstances" || verb == "CreateFleet"
			ingredients := !slices.ContainsFunc(s.Resource, func(r string) bool {
				return !slices.ContainsFunc([]string{":image/", ":snapshot/", ":capacity-reservation/", ":placement-group/",
					":security-group/", ":subnet/"},
					func(kind string) bool { return strings.Contains(r, kind) })
			})
			if scoped := !everything || tagged || launches && ingredients; !reads && !scoped {
				t.Errorf("%s: %s is allowed for all resources without a tag condition", s.Sid, action)
			}
			if slices.Contains(s.Resource, "*") && !reads {
				t.Errorf("%s: %s is allowed for every resource", s.Sid, action)
			}
		}
	}
}
