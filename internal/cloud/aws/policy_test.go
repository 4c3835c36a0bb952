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
	root       = "../../.." // of the repository
	services   = "github.com/aws/aws-sdk-go-v2/service/"
	policyFile = root + "/docs/aws-iam-policy.json"
)

// renamed maps operations to permissions with a different name.
var renamed = map[string]string{"sqs:DeleteMessageBatch": "sqs:DeleteMessage"}

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
		"upkeep/prices.go", "interruption/call.go"} {
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

func readPolicy(t *testing.T) policy {
	t.Helper()
	text, err := os.ReadFile(policyFile)
	check(t, err)
	var read policy
	check(t, json.Unmarshal(text, &read))
	return read
}

// TestPolicy checks that the documented permissions are exactly those for the requests that the program makes.
func TestPolicy(t *testing.T) {
	allowed := map[string]bool{}
	for _, s := range readPolicy(t).Statement {
		if s.Effect != "Allow" {
			t.Errorf("%s: %s", s.Sid, s.Effect)
		}
		for _, action := range s.Action {
			allowed[action] = true
		}
	}
	needed := made(t)
	if diff := cmp.Diff(needed, slices.Sorted(maps.Keys(allowed))); diff != "" {
		t.Errorf("the program's requests and the permissions of the policy differ -requests +policy:\n%s", diff)
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
}

// TestPolicyIsScoped checks that every permission to change something is restricted to the cluster's tags or to one
// resource. Only reading is unrestricted.
func TestPolicyIsScoped(t *testing.T) {
	for _, s := range readPolicy(t).Statement {
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
				return !slices.ContainsFunc([]string{":image/", ":snapshot/", ":security-group/", ":subnet/"},
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
