// Package karpenter has no code, only this test of the repository's architecture: which package may import which, and
// what pure code must not do. docs/architecture.md explains the rules. Every rule here has its reason. A violation
// prints the chain of imports, or the line, that breaks the rule.
//
// To allow something new, change the table in the commit that needs it, with the reason.
package karpenter

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/karpenter-go/karpenter"

// importRule restricts the imports of the packages that match from. Patterns are those of the go command: packages of
// this repository start with "./", and "/..." matches a package and all below it.
type importRule struct {
	from    string
	only    []string // direct imports must match one of these; nil allows any
	never   []string // imports must not match any of these
	except  []string // unless they match one of these
	through bool     // never applies to transitive imports too
	because string
}

// pureStandard is the part of the standard library that only computes. The parse of the source further restricts sync
// and sync/atomic to single files, and package time to its types.
var pureStandard = []string{
	"bytes", "cmp", "container/heap", "crypto/sha256", "encoding/...", "errors", "fmt", "hash/fnv", "iter", "maps",
	"math", "math/big", "math/bits", "slices", "sort", "strconv", "strings", "sync", "sync/atomic", "time", "unicode", "unicode/utf8",
}

// operatorsOnly are the packages that only operators and developers need: the plugin's answers, the demo and the sandbox
// with the simulated AWS, and what draws on a terminal. The controller links none of them.
var operatorsOnly = []string{
	"./plugin/doctor", "./internal/legacy/migrate", "./plugin/bill", "./plugin/billing", "./plugin/offline", "./plugin/top",
	"./plugin/podusage", "./plugin/review",
	"./plugin/panel", "./plugin/history/...", "./plugin/viewer", "./plugin/web/...",
	"./plugin/admission/...", // the API server's validation, for migrate and simulate
	"./internal/testing/...", "./cloud/cloudtest",
	"k8s.io/cli-runtime/...", "github.com/charmbracelet/...", "charm.land/...",
}

var importRules = []importRule{
	{
		from:    "./cmd/karpenter",
		never:   operatorsOnly,
		through: true,
		because: "the controller's image holds the controller: what else it links is scanned, shipped and never run",
	},
	{
		from:    "./internal/engine/...",
		only:    append([]string{"./internal/engine/..."}, pureStandard...),
		because: "the engine maps a value to a value: with I/O, clocks or chance in it, no plan could be replayed",
	},
	{
		from: "./internal/engine/...",
		never: []string{"k8s.io/...", "sigs.k8s.io/...", "github.com/prometheus/...", "github.com/aws/...",
			"./api/...", "./cloud/...", "./internal/cloud/...", "./internal/cluster/...", "./internal/telemetry/..."},
		through: true,
		because: "the engine must run on a laptop from a capture, without a cluster, a cloud or their types",
	},
	{
		from:    "./internal/engine/bitset",
		never:   []string{"./..."},
		because: "bitset is at the bottom: it does not know what its integers mean",
	},
	{
		from:    "./internal/engine/quantity",
		never:   []string{"./..."},
		because: "quantity is at the bottom: it knows numbers, not nodes",
	},
	{
		from:    "./internal/engine/label",
		never:   []string{"./..."},
		except:  []string{"./internal/engine/bitset"},
		because: "the label algebra is about strings and sets, not about pods or pools",
	},
	{
		from:    "./internal/engine/model",
		never:   []string{"./internal/engine/plan", "./internal/engine/placement"},
		through: true,
		because: "a snapshot is what is; what to do about it builds on it",
	},
	{
		from:    "./internal/engine/plan",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/bitset", "./internal/engine/label", "./internal/engine/model", "./internal/engine/pause", "./internal/engine/quantity"},
		because: "a plan is data: what is decided about it builds on it",
	},
	{
		from:    "./internal/engine/eviction",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/model", "./internal/engine/plan"},
		because: "whether a pod can be evicted does not depend on why its node is removed, or where the pod goes",
	},
	{
		from:    "./internal/engine/nominate",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/model", "./internal/engine/plan"},
		because: "nominations follow from a plan and a snapshot, however the plan was made and whatever else is recorded",
	},
	{
		from:    "./internal/engine/reserve",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/eviction", "./internal/engine/model", "./internal/engine/plan"},
		because: "reservations are read from what is recorded; placement and the guard ask for them",
	},
	{
		from:    "./internal/engine/guard",
		never:   []string{"./internal/engine/placement", "./internal/engine/disruption", "./internal/engine/futile"},
		through: true,
		because: "a check that searches for a plan itself would repeat the mistake that it must find",
	},
	{
		from:    "./internal/engine/pause",
		never:   []string{"./..."},
		because: "that what failed waits is the same whatever failed",
	},
	{
		from:  "./internal/engine/futile",
		never: []string{"./internal/engine/..."},
		except: []string{"./internal/engine/label", "./internal/engine/model", "./internal/engine/pause", "./internal/engine/plan",
			"./internal/engine/quantity"},
		because: "launches are judged by what they led to, such as the room of a node, not by how they were decided",
	},
	{
		from:    "./internal/testing/audit",
		only:    append([]string{"./internal/engine/..."}, pureStandard...),
		because: "the judge of plans maps values to a verdict, like the engine",
	},
	{
		from:    "./internal/testing/audit",
		never:   []string{"./internal/engine/placement"},
		through: true,
		because: "a judge that shares code with the judged shares its mistakes",
	},
	{
		from:    "./internal/testing/neutral",
		never:   []string{"./internal/..."},
		because: "which changes do not matter follows from the API: knowledge of how plans are made would excuse them",
	},
	{
		from:    "./internal/engine/bound",
		never:   []string{"./internal/engine/placement", "./internal/engine/plan"},
		through: true,
		because: "a bound that shares code with the packer shares its mistakes",
	},
	{
		from:    "./internal/cluster/convert",
		never:   []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "net/...", "os/...", "context"},
		because: "convert is pure: objects in, model out; the caller has the client that fetches them",
	},
	{
		from: "./internal/cluster/record",
		never: []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "github.com/go-logr/...", "net/...", "os/...", "context",
			"./..."},
		except:  []string{"./api/..."},
		because: "a record is a pod in less memory: which of its fields mean something is not known here",
	},
	{
		from:    "./internal/cluster/wire",
		never:   []string{"sigs.k8s.io/controller-runtime/...", "./..."},
		except:  []string{"./internal/cluster/convert"},
		because: "how pods are decoded does not depend on what is done with them",
	},
	{
		from: "./internal/cluster/state",
		never: []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "github.com/go-logr/...", "net/...", "os/...", "context",
			"./cloud/...", "./internal/..."},
		except: []string{"./cloud", "./internal/cluster/convert", "./internal/cluster/record", "./internal/engine/...",
			"./internal/cluster/state"},
		because: "the controller and the commands that read files must make the same of the same objects: where those come from, and when, " +
			"is not known here",
	},
	{
		from:    "./cloud/...",
		never:   []string{"./..."},
		except:  []string{"./cloud/...", "./api/..."},
		because: "the contract of a provider, its conformance suite and the simulated cloud are for other modules, which cannot import internal",
	},
	{
		from:   "./internal/cloud/...",
		never:  []string{"./internal/..."},
		except: []string{"./internal/cloud/...", "./internal/cluster/pricerule"},
		because: "a provider knows its cloud, the API types, and rules for prices, which it may state; what to buy and what the " +
			"cluster holds is not its business",
	},
	{
		from:    "./internal/cloud/aws/catalog/...",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/...", "github.com/aws/...", "net/..."},
		except:  []string{"./internal/cloud/aws/catalog"},
		because: "provider and simulator share these facts and nothing else: with code in between they would share its mistakes",
	},
	{
		from:    "./internal/testing/awssim",
		never:   []string{"./...", "github.com/aws/...", "sigs.k8s.io/...", "k8s.io/api/...", "k8s.io/client-go/..."},
		except:  []string{"./internal/cloud/aws/catalog"},
		because: "the simulated AWS judges the provider: what they shared they would agree on, right or wrong",
	},
	{
		from:    "./internal/testing/awssim/kubelet",
		never:   []string{"./...", "github.com/aws/..."},
		except:  []string{"./internal/testing/awssim"},
		because: "simulated kubelets judge the user data that the provider writes: they read it in their own ways",
	},
	{
		from:    "./internal/testing/awstest",
		never:   []string{"./internal/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/..."},
		except:  []string{"./internal/testing/awssim", "./internal/cloud/aws/call"},
		because: "the tests of every part of the provider use it: it can be about none of them",
	},
	{
		from:    "./cmd/...",
		never:   []string{"./internal/testing/...", "./cloud/cloudtest"},
		through: true,
		because: "the programs of users hold no simulated AWS, no control plane, which are in the module sandbox, and no tests of providers",
	},
	{
		from:  "./internal/testing/plantest",
		never: []string{"./..."},
		except: []string{"./internal/engine/label", "./internal/engine/model", "./internal/engine/plan",
			"./internal/engine/quantity"},
		because: "the tests of every package that decides about plans use it: it can know none of them",
	},
	{
		from:    "./internal/testing/clitest",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		except:  []string{"./internal/testing/golden/update", "./plugin/cli"},
		because: "pages are compared with any program, by its root command",
	},
	{
		from:    "./internal/testing/sandbox",
		never:   []string{"./...", "sigs.k8s.io/..."},
		except:  []string{"./internal/testing/sandbox/download"},
		because: "a control plane of Kubernetes is the same whatever runs on it",
	},
	{
		from:    "./internal/testing/sandbox/download",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		because: "archives of a release are fetched and checked the same whatever runs their executables",
	},
	{
		from:    "./internal/testing/fakeapi",
		never:   []string{"./..."},
		except:  []string{"./api/..."},
		because: "an API server is the same whatever its clients do; those that it measures it must not know",
	},
	{
		from:    "./internal/testing/golden/...",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		except:  []string{"./internal/testing/golden/update"},
		because: "files of sections are the same whatever is in them",
	},
	{
		from:    "./internal/testing/scratch",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		because: "a folder for temporary data is the same whatever is in it",
	},
	{
		from:    "./internal/testing/sandboxtest",
		never:   []string{"./..."},
		except:  []string{"./internal/testing/sandbox", "./internal/testing/scratch"},
		because: "the tests of every package use it: it can be about none of them",
	},
	{
		from:    "./internal/cloud/aws",
		never:   []string{"./internal/testing/awssim/...", "./internal/testing/awstest", "./cloud/kwok"},
		because: "the provider meets the simulator over the wire only, as it meets AWS",
	},
	{
		from:    "./internal/cloud/aws/instance",
		never:   []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "github.com/aws/...", "net/...", "os/...", "context"},
		because: "what a class sells is worked out from facts; the caller has the client that fetches them",
	},
	{
		from:    "./internal/cloud/aws/expression",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/...", "github.com/aws/..."},
		because: "an expression maps numbers to a number; which type they are of, and what the result is for, is decided elsewhere",
	},
	{
		from:    "./internal/cloud/aws/call",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/...", "github.com/aws/aws-sdk-go-v2/service/..."},
		because: "a call is the same for every service and every caller",
	},
	{
		from:    "./internal/cloud/aws/discovery",
		never:   []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "./internal/..."},
		except:  []string{"./internal/cloud/aws/call"},
		because: "what AWS has is found for a class that it is given; the caller has a Kubernetes client, and reads and writes the class",
	},
	{
		from:  "./internal/cloud/aws/class",
		never: []string{"./internal/..."},
		except: []string{"./internal/cloud/aws/discovery", "./internal/cloud/aws/expression", "./internal/cloud/aws/launch",
			"./internal/cloud/aws/userdata"},
		because: "the controller of classes says what is wrong with them, for which it tries a launch as package launch makes it; what is launched is not its business",
	},
	{
		from:  "./internal/cloud/aws/launch",
		never: []string{"./cloud/...", "./internal/..."},
		except: []string{"./cloud", "./internal/cloud/aws/call", "./internal/cloud/aws/catalog", "./internal/cloud/aws/instance",
			"./internal/cloud/aws/userdata"},
		because: "what is bought follows from an order; how its subnets, images and prices were found is not its business",
	},
	{
		from:    "./internal/cloud/aws/upkeep",
		never:   []string{"./cloud/...", "./internal/..."},
		except:  []string{"./cloud", "./internal/cloud/aws/catalog", "./internal/cloud/aws/discovery", "./internal/cloud/aws/instance"},
		because: "rounds fetch and tidy; what is made of it, and how launches work, is not their business",
	},
	{
		from:    "./internal/cloud/aws/commitment",
		never:   []string{"k8s.io/...", "sigs.k8s.io/...", "./internal/..."},
		except:  []string{"./internal/cloud/aws/call", "./internal/cluster/pricerule"},
		because: "what an account has committed is the same for whatever plans with it",
	},
	{
		from:    "./internal/cloud/aws/interruption",
		never:   []string{"k8s.io/api/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "./..."},
		except:  []string{"./internal/cloud/aws/call", "./internal/cloud/aws/interruption/notice"},
		because: "notices are heard and decided upon without a cluster; the caller has the client that finds the claims and deletes them",
	},
	{
		from: "./internal/cloud/aws/userdata",
		never: []string{"github.com/aws/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "net", "net/http/...", "os/...",
			"context", "math/rand/...", "./internal/..."},
		because: "user data is a function of its request: launch templates are found again by a hash of it",
	},
	{
		from:    "./internal/engine/placement/simplex",
		never:   []string{"./..."},
		because: "a linear program is numbers; what they are worth is decided elsewhere",
	},
	{
		from:    "./internal/engine/placement/tally",
		never:   []string{"./..."},
		because: "a tally counts by number; the rules know what the numbers stand for",
	},
	{
		from:    "./internal/engine/placement/refusal",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/label", "./internal/engine/model", "./internal/engine/plan", "./internal/engine/quantity"},
		because: "what verdicts say together does not depend on how they were reached",
	},
	{
		from:    "./internal/engine/placement/relax",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/label", "./internal/engine/model", "./internal/engine/quantity"},
		because: "in which order preferences are dropped follows from the pods alone, not from where they fit",
	},
	{
		from:    "./internal/engine/allocation",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/label", "./internal/engine/model", "./internal/engine/pause", "./internal/engine/quantity"},
		because: "a bill divides the prices of what is there; what would be cheaper is not its business",
	},
	{
		from:    "./internal/engine/spotshare",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/bitset", "./internal/engine/label", "./internal/engine/model", "./internal/engine/plan", "./internal/engine/quantity"},
		because: "a share is counted on nodes and claims, however these were chosen",
	},
	{
		from: "./internal/engine/placement",
		never: []string{"./internal/engine/eviction", "./internal/engine/futile", "./internal/engine/guard", "./internal/engine/nominate",
			"./internal/engine/reserve"},
		because: "placement reads reservations from the snapshot; how they are derived is not its business",
	},
	{
		from:    "./internal/engine/placement",
		never:   []string{"./internal/engine/disruption"},
		through: true,
		because: "disruption asks placement what would be; placement must not depend on why it is asked",
	},
	{
		from:    "./internal/cluster",
		never:   []string{"./internal/engine/placement", "./internal/engine/disruption", "./internal/controller/..."},
		through: true,
		because: "the mirror shows what is; decisions and actions read it",
	},
	{
		from: "./internal/execute",
		never: []string{"./cloud/...", "./internal/cloud/...", "./internal/controller/...", "./internal/engine/placement",
			"./internal/engine/disruption"},
		except:  []string{"./cloud"},
		through: true,
		because: "the executor carries out any plan; of package cloud it has the notation of amounts, and no provider",
	},
	{
		from: "./internal/controller/provision",
		never: []string{"./cloud/...", "./internal/cloud/...", "./internal/engine/disruption", "./internal/controller/disrupt",
			"./internal/controller/static"},
		because: "the loop launches what a plan says; a machine is a node of a snapshot, whatever its cloud",
	},
	{
		from: "./internal/controller/disrupt",
		never: []string{"./cloud/...", "./internal/cloud/...", "./internal/engine/placement", "./internal/controller/provision",
			"./internal/controller/static"},
		because: "the loop advances commands; a machine is a node of a snapshot, whatever its cloud",
	},
	{
		from: "./internal/controller/static",
		never: []string{"./cloud/...", "./internal/cloud/...", "./internal/engine/placement", "./internal/controller/provision",
			"./internal/controller/disrupt"},
		because: "the number of nodes of a static pool does not depend on pods",
	},
	{
		from:    "./internal/controller/batch",
		never:   []string{"./..."},
		because: "how long a loop waits does not depend on what it decides",
	},
	{
		from:    "./internal/controller/rejected",
		never:   []string{"./..."},
		except:  []string{"./internal/cluster/state", "./internal/telemetry"},
		because: "the mirror rejects objects, and this package only reports them",
	},
	{
		from:  "./internal/testing/loopcluster",
		never: []string{"./..."},
		except: []string{"./internal/engine/guard", "./internal/engine/label", "./internal/engine/model", "./internal/engine/plan",
			"./internal/engine/quantity", "./internal/execute", "./internal/testing/plantest"},
		because: "the tests of all loops share this cluster, so it knows none of them",
	},
	{
		from: "./internal/controller/census",
		never: []string{"./internal/engine/placement", "./internal/engine/disruption", "./internal/execute", "./cloud/...",
			"./internal/cloud/..."},
		through: true,
		except:  []string{"./cloud"},
		because: "a census counts what is there; what is planned is not its business, and it writes nothing",
	},
	{
		from:    "./internal/controller/nodeclaim",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/pause"}, // that of controller/removal
		through: true,
		because: "the life of a claim does not depend on what planned it",
	},
	{
		from:    "./internal/controller/node",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/pause"}, // that of controller/removal
		through: true,
		because: "the removal of a node does not depend on what decided it",
	},
	{
		from:    "./internal/controller/removal",
		never:   []string{"./internal/engine/...", "./internal/execute", "./cloud/...", "./internal/cloud/..."},
		except:  []string{"./cloud", "./internal/engine/pause"},
		through: true,
		because: "whether a machine may be removed follows from what the cloud and its node show and from pauses, not from what is planned",
	},
	{
		from:    "./internal/controller/nodepool",
		never:   []string{"./internal/engine/..."},
		except:  []string{"./internal/engine/pause"},
		through: true,
		because: "a pool's status says what is there, not what is planned",
	},
	{
		from:    "./internal/legacy/provisioner",
		never:   []string{"./internal/engine/...", "./cloud/...", "./internal/cloud/..."},
		because: "older objects become pools and classes; what those mean to planning and to a cloud is told by them",
	},
	{
		from:    "./internal/legacy/v1alpha5",
		never:   []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "net/...", "os/...", "context", "./internal/..."},
		except:  []string{"./api/names"},
		because: "what an older object meant follows from the object and the settings: controller and migrate must agree on it",
	},
	{
		from:  "./internal/legacy/migrate",
		never: []string{"k8s.io/client-go/...", "sigs.k8s.io/...", "net/...", "os/...", "context", "./internal/..."},
		except: []string{"./internal/legacy/v1alpha5", "./internal/legacy/v1beta1", "./internal/legacy/settings", "./api/names",
			"./internal/engine/explain"}, // which of the known names one resembles
		because: "manifests in, manifests out: the caller reads files or a cluster, and the other packages of legacy know what a version means",
	},
	{
		from:    "./charts",
		only:    []string{"embed"},
		because: "the chart's schema is data: programs read it as Helm does",
	},
	{
		from:    "./plugin/admission/...",
		never:   []string{"./internal/...", "k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "net/...", "os/..."},
		because: "what an API server would answer follows from the object and the definitions, which the caller reads",
	},
	{
		from:    "./internal/controller/...",
		never:   []string{"./plugin/admission"},
		through: true,
		because: "a controller has an API server to ask, and no memory for compiled rules",
	},
	{
		from:    "./api/names",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		except:  []string{"./api/karpenter/v1", "./api/aws/v1"},
		because: "controllers and commands that read or write manifests share one table of names",
	},
	{
		from:    "./internal/legacy/nodelabel",
		never:   []string{"./internal/engine/..."},
		through: true,
		because: "labels follow from what pods say and nodes are, not from what is planned",
	},
	{
		from:    "./internal/transport",
		never:   []string{"./cloud/...", "./internal/..."},
		except:  []string{"./cloud"},
		because: "the difference of clocks follows from answers, and the right to write from the Lease and the clocks alone",
	},
	{
		from:    "./plugin/cli",
		never:   []string{"./..."},
		except:  []string{"./internal/engine/explain", "./internal/telemetry", "./plugin/table"},
		because: "usage, exit codes and versions are the same for every program, whatever its commands do",
	},
	{
		from:    "./plugin/panel",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		except:  []string{"./internal/engine/...", "./plugin/web/view"},
		because: "what is known of one node, pod or pool comes from the snapshot: page and terminal must have the same",
	},
	{
		from: "./plugin/offline",
		never: []string{"github.com/spf13/...", "./cmd/...", "./plugin/cli", "./internal/cluster", "./internal/controller/...",
			"./internal/execute",
			"./plugin/doctor", "./internal/legacy/migrate", "./plugin/web"},
		because: "an answer is a value that any program prints; it comes from the engine, and nothing of it is written to a cluster",
	},
	{
		from:    "./internal/cluster/room",
		never:   []string{"./internal/..."},
		except:  []string{"./internal/engine/model", "./internal/engine/plan", "./internal/engine/quantity"},
		because: "what a buffer asks for is the same for the controller and for the commands that read files",
	},
	{
		from:  "./internal/cluster/capture",
		never: []string{"./cloud/...", "./internal/..."},
		except: []string{"./cloud", "./internal/cluster/convert", "./internal/cluster/pricerule", "./internal/cluster/room",
			"./internal/cluster/state"},
		because: "the controller and the commands write the same document, with the price rules of both; its readers, and what " +
			"is decided, are not known here",
	},
	{
		from:    "./internal/gates",
		only:    pureStandard,
		because: "which feature gates there are does not depend on what they switch",
	},
	{
		from:    "./plugin/table",
		only:    pureStandard,
		because: "how tables and lines fit a width does not depend on what they say, or on a terminal",
	},
	{
		from:    "./plugin/bill",
		only:    append([]string{"./internal/engine/quantity", "./plugin/table"}, pureStandard...), // quantity has the hours of a month
		because: "a bill is plain data: terminal, page and report show the same rows",
	},
	{
		from:    "./plugin/podusage",
		never:   []string{"./...", "k8s.io/client-go/...", "sigs.k8s.io/..."},
		because: "usage is what objects say; how they are read, and what pods cost, is not its business",
	},
	{
		from: "./plugin/billing",
		only: append([]string{"./internal/engine/allocation", "./internal/engine/model", "./internal/engine/quantity",
			"./plugin/bill"}, pureStandard...),
		because: "a bill follows from a snapshot, wherever that was read",
	},
	{
		from:    "./plugin/top",
		never:   []string{"./...", "k8s.io/...", "sigs.k8s.io/..."},
		except:  []string{"./plugin/bill", "./plugin/table"},
		because: "a view of a fleet is drawn from plain data: it must be the same wherever that was read",
	},
	{
		from:    "./plugin/review",
		only:    append([]string{"encoding/json", "regexp", "./plugin/table", "./plugin/web/view"}, pureStandard...),
		because: "the verdict on a change is the same wherever manifests and fleets were read: objects are their JSON, fleets their figures",
	},
	{
		from: "./plugin/history",
		only: append([]string{"bufio", "encoding/json", "io", "regexp", "k8s.io/apimachinery/pkg/util/duration", "./plugin/bill",
			"./plugin/table"}, pureStandard...), // duration is the form of kubectl's ages
		because: "the same lines say the same anywhere: where a log is read, and what the flags are, is not known here",
	},
	{
		from:    "./plugin/history/podlog",
		never:   []string{"./..."},
		because: "where the log of a pod is does not depend on what its lines mean",
	},
	{
		from:    "./plugin/web/view",
		only:    append([]string{"encoding/csv", "io", "./plugin/bill", "./plugin/table"}, pureStandard...),
		because: "the rows of a page are plain data: they must be the same wherever they were read, and be tested without a cluster",
	},
	{
		from: "./plugin/web/markup",
		only: append([]string{"io", "io/fs", "reflect", "text/template/parse"}, pureStandard...),
		because: "text/template and html/template call methods by name, which keeps every exported method in a program; " +
			"and templates are the same whatever they show",
	},
	{
		from:    "./plugin/web/picture",
		only:    append([]string{"./plugin/bill", "./plugin/web/view", "bufio", "io"}, pureStandard...),
		because: "layout maps values to rectangles: page, exported file and document must show the same",
	},
	{
		from:    "./plugin/web",
		never:   []string{"k8s.io/client-go/...", "sigs.k8s.io/controller-runtime/...", "./internal/cluster/...", "./cmd/..."},
		because: "the page shows answers; the caller reads them with a client or from a file, so that the page can be served from anywhere",
	},
	{
		from:    "./plugin/doctor",
		never:   []string{"./cloud/...", "./internal/..."},
		except:  []string{"./cloud", "./internal/engine/pause", "./plugin/viewer"}, // pause is read from NodePools; viewer names the role that the fix of a finding needs
		because: "a doctor goes by what every installation shows; what it plans, and what a provider does, is not asked",
	},
	{
		from:    "./internal/legacy/webhook",
		never:   []string{"./internal/..."},
		except:  []string{"./internal/legacy/v1beta1"},
		because: "older versions are served whatever is launched and by which provider",
	},
	{
		from:    "./internal/legacy/v1beta1",
		never:   []string{"./...", "k8s.io/client-go/...", "sigs.k8s.io/...", "net/...", "os/...", "context", "time"},
		except:  []string{"./api/karpenter/v1"},
		because: "a conversion is a function of one object: the webhook, migrate and the fuzz tests must get the same from it",
	},
	{
		from:    "./internal/telemetry/...",
		never:   []string{"./..."},
		except:  []string{"./internal/telemetry/...", "./api/...", "./cloud"},
		because: "whatever emits metrics imports telemetry; it may know API types and the provider it measures, no more",
	},
	{
		from:    "./api/...",
		never:   []string{"./cloud/...", "./internal/..."},
		because: "the API types are for other modules to import, which cannot import internal",
	},
}

// imports is a graph: package -> imported packages, those of this repository as "./...".
type imports map[string][]string

func matches(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		if below, ok := strings.CutSuffix(pattern, "/..."); ok {
			return pkg == below || strings.HasPrefix(pkg, below+"/")
		}
		return pkg == pattern
	})
}

// importViolations returns one text for each forbidden import, with the import chain.
func importViolations(graph imports, rules []importRule) []string {
	var found []string
	for _, rule := range rules {
		for _, pkg := range slices.Sorted(maps.Keys(graph)) {
			if matches([]string{rule.from}, pkg) {
				found = append(found, rule.violations(graph, pkg)...)
			}
		}
	}
	return found
}

func (rule importRule) violations(graph imports, pkg string) []string {
	var found []string
	blame := func(chain []string, what string) {
		found = append(found, fmt.Sprintf("%s: %s, because %s", strings.Join(chain, " -> "), what, rule.because))
	}
	seen := map[string]bool{pkg: true}
	for queue := [][]string{{pkg}}; len(queue) > 0; queue = queue[1:] {
		chain := queue[0]
		for _, imported := range slices.Sorted(slices.Values(graph[chain[len(chain)-1]])) {
			longer := append(slices.Clone(chain), imported)
			switch {
			case seen[imported]:
				continue
			case len(chain) == 1 && rule.only != nil && !matches(rule.only, imported):
				blame(longer, "not on the list of what may be imported")
			case matches(rule.never, imported) && !matches(rule.except, imported):
				blame(longer, "forbidden")
			case rule.through:
				queue = append(queue, longer)
			}
			seen[imported] = true
		}
	}
	return found
}

// TestImports checks the real graph against the rules.
func TestImports(t *testing.T) {
	graph := loadImports(t)
	if _, ok := graph["./internal/engine/label"]; !ok {
		t.Fatalf("go list does not know the engine: %d packages", len(graph))
	}
	for _, violation := range importViolations(graph, importRules) {
		t.Error(violation)
	}
	for _, stale := range stalePatterns(graph, importRules) {
		t.Error(stale)
	}
}

// stalePatterns returns one text for each rule, or exception of a rule, that holds for no package.
func stalePatterns(graph imports, rules []importRule) []string {
	var found []string
	for _, rule := range rules {
		for _, pattern := range append([]string{rule.from}, rule.except...) {
			names := func(pkg string) bool { return matches([]string{pattern}, pkg) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(graph)), names) {
				found = append(found, fmt.Sprintf("the rule of %s: %s names no package", rule.from, pattern))
			}
		}
	}
	return found
}

// loadImports runs the go command once to get the imports of all packages that are built in the repository.
func loadImports(t *testing.T) imports {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-json=ImportPath,Imports", "./...")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, &stderr)
	}
	graph := imports{}
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var pkg struct {
			ImportPath string
			Imports    []string
		}
		if err := decoder.Decode(&pkg); err == io.EOF {
			return graph
		} else if err != nil {
			t.Fatalf("reading the output of go list: %v", err)
		}
		for i := range pkg.Imports {
			pkg.Imports[i] = ours(pkg.Imports[i])
		}
		graph[ours(pkg.ImportPath)] = pkg.Imports
	}
}

// ours shortens the path of a package of this repository to "./...".
func ours(importPath string) string {
	if below, ok := strings.CutPrefix(importPath, module); ok && (below == "" || below[0] == '/') {
		return "." + below
	}
	return importPath
}

// These are the limits of the source.
const maxLines = 600

var (
	// concurrent are the only files of the engine that may start goroutines or lock. Results must be reduced by the
	// lowest index.
	concurrent = []string{"internal/engine/placement/parallel.go"}
	// lockedState is pure like the engine, but for its lock: informers show it objects at the same time.
	lockedState = "internal/cluster/state"
	// vague are package names that do not describe the package's subject.
	vague = []string{"util", "utils", "common", "helper", "helpers", "type", "types", "config", "misc"}
	// impureTime is what package time has besides types: the clock, and the machine's time zone.
	impureTime = []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "NewTimer", "NewTicker", "Tick", "Local",
		"LoadLocation"}
)

// TestSource checks every Go file of the repository, including its other modules, against the rules of the source.
func TestSource(t *testing.T) {
	files := loadSource(t)
	if _, ok := files["internal/engine/label/space.go"]; !ok {
		t.Fatalf("the walk does not find the engine: %d files", len(files))
	}
	for _, violation := range sourceViolations(files) {
		t.Error(violation)
	}
}

// loadSource returns the text of all Go files, except tests and generated files, by their slash path.
func loadSource(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := os.DirFS(".")
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		base := path.Base(name)
		switch {
		case err != nil:
			return err
		case entry.IsDir() && name != "." && (base == "testdata" || base == "vendor" || strings.ContainsAny(base[:1], "._")):
			return fs.SkipDir
		case entry.IsDir() || filepath.Ext(name) != ".go":
			return nil
		case strings.HasSuffix(name, "_test.go") || strings.HasPrefix(base, "zz_generated"):
			return nil
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatalf("reading the source: %v", err)
	}
	return files
}

// sourceViolations returns one text for each broken rule, with its file and line.
func sourceViolations(files map[string]string) []string {
	var found []string
	engine := map[string][]*ast.File{} // by folder
	fset := token.NewFileSet()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if lines := strings.Count(files[name], "\n"); lines > maxLines {
			found = append(found, fmt.Sprintf("%s: %d lines, more than %d: split it", name, lines, maxLines))
		}
		file, err := parser.ParseFile(fset, name, files[name], parser.SkipObjectResolution)
		if err != nil {
			found = append(found, err.Error())
			continue
		}
		if slices.Contains(vague, file.Name.Name) {
			found = append(found, fmt.Sprintf("%s: package %s: name a package for the noun that it is about", name, file.Name))
		}
		found = append(found, sharedReads(fset, name, file)...)
		found = append(found, otherConverters(fset, name, file)...)
		if dir := path.Dir(name); strings.HasPrefix(dir, "internal/engine") || dir == "internal/testing/audit" || dir == lockedState {
			engine[dir] = append(engine[dir], file)
		}
	}
	for _, dir := range slices.Sorted(maps.Keys(engine)) {
		found = append(found, impurities(fset, dir, engine[dir])...)
	}
	return found
}

// sharedReads reports reads of a condition through StatusConditions, which adds missing conditions to the object that
// it reads. In an object of a cache that is a data race (a DeepCopy of the cache panics). Package api defines both
// ways.
func sharedReads(fset *token.FileSet, name string, file *ast.File) []string {
	if strings.HasPrefix(name, "api/") {
		return nil
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		read, ok := n.(*ast.SelectorExpr)
		if !ok || !slices.Contains([]string{"Get", "IsTrue", "List", "Root"}, read.Sel.Name) {
			return true
		}
		if call, ok := read.X.(*ast.CallExpr); ok {
			if method, ok := call.Fun.(*ast.SelectorExpr); ok && method.Sel.Name == "StatusConditions" {
				found = append(found, fmt.Sprintf("%s: StatusConditions().%s writes to the object that it reads: use Condition",
					fset.Position(n.Pos()), read.Sel.Name))
			}
		}
		return true
	})
	return found
}

// converters are the functions that make the engine's input of objects. The controller and the commands that read files
// show the objects to package state, which calls them: what one of them knows, the other knows too.
var converters = []string{"convert.Pod", "convert.Node", "convert.Pool", "convert.Daemon", "convert.PDB", "convert.Quota", "model.NewBuilder"}

// otherConverters reports calls of the converters from elsewhere. Tests have worlds without objects.
func otherConverters(fset *token.FileSet, name string, file *ast.File) []string {
	for _, dir := range []string{"internal/cluster/state/", "internal/cluster/convert/", "internal/engine/", "internal/testing/"} {
		if strings.HasPrefix(name, dir) {
			return nil
		}
	}
	var found []string
	ast.Inspect(file, func(n ast.Node) bool {
		if call, ok := n.(*ast.SelectorExpr); ok {
			if of, ok := call.X.(*ast.Ident); ok && slices.Contains(converters, of.Name+"."+call.Sel.Name) {
				found = append(found, fmt.Sprintf("%s: %s.%s: show the object to package state", fset.Position(n.Pos()), of.Name, call.Sel.Name))
			}
		}
		return true
	})
	return found
}

// purity searches one package for operations that pure code must not contain.
type purity struct {
	fset  *token.FileSet
	pkg   *types.Package
	uses  map[*ast.Ident]types.Object
	found []string
}

// impurities parses no imports: identifiers resolve without them, and their types do not matter here.
func impurities(fset *token.FileSet, dir string, files []*ast.File) []string {
	p := purity{fset: fset, uses: map[*ast.Ident]types.Object{}}
	config := types.Config{Error: func(error) {}, Importer: noImporter{}}
	p.pkg, _ = config.Check(dir, fset, files, &types.Info{Uses: p.uses})
	for _, file := range files {
		p.file(file)
	}
	return p.found
}

type noImporter struct{}

func (noImporter) Import(importPath string) (*types.Package, error) {
	return nil, fmt.Errorf("%s is not looked at", importPath)
}

func (p *purity) blame(at ast.Node, format string, args ...any) {
	position := p.fset.Position(at.Pos())
	p.found = append(p.found, fmt.Sprintf("%s:%d: %s", position.Filename, position.Line, fmt.Sprintf(format, args...)))
}

func (p *purity) file(file *ast.File) {
	name := p.fset.Position(file.Pos()).Filename
	concurrently := slices.Contains(concurrent, name)
	mayLock := concurrently || path.Dir(name) == lockedState
	for _, spec := range file.Imports {
		importPath := strings.Trim(spec.Path.Value, `"`)
		switch {
		case spec.Name != nil && spec.Name.Name == ".":
			p.blame(spec, "dot import of %s hides where names come from", importPath)
		case matches([]string{"math/rand/...", "crypto/rand", "unsafe", "C"}, importPath):
			p.blame(spec, "import of %s: the same snapshot must give the same plan", importPath)
		case matches([]string{"sync/..."}, importPath) && !mayLock:
			p.blame(spec, "import of %s outside %v: a lock shares state", importPath, concurrent)
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		p.node(n, concurrently)
		return true
	})
}

func (p *purity) node(n ast.Node, concurrently bool) {
	switch n := n.(type) {
	case *ast.SelectorExpr:
		if from, ok := p.packageOf(n.X); ok && from == "time" && slices.Contains(impureTime, n.Sel.Name) {
			p.blame(n, "time.%s: time is the snapshot's Now", n.Sel.Name)
		}
	case *ast.GoStmt:
		if !concurrently {
			p.blame(n, "goroutine outside %v", concurrent)
		}
	case *ast.AssignStmt:
		for _, left := range n.Lhs {
			p.written(left)
		}
	case *ast.IncDecStmt:
		p.written(n.X)
	case *ast.RangeStmt:
		p.written(n.Key)
		p.written(n.Value)
	case *ast.UnaryExpr:
		if n.Op == token.AND {
			p.written(n.X)
		}
	case *ast.CallExpr:
		p.call(n)
	}
}

// call reports calls of built-in functions that write to their first argument.
func (p *purity) call(call *ast.CallExpr) {
	name, ok := call.Fun.(*ast.Ident)
	if !ok || len(call.Args) == 0 {
		return
	}
	if _, builtin := p.uses[name].(*types.Builtin); builtin && slices.Contains([]string{"clear", "copy", "delete"}, name.Name) {
		p.written(call.Args[0])
	}
}

// written reports a write to a variable of the package, or to an element or field of one.
func (p *purity) written(target ast.Expr) {
	for target != nil {
		switch t := target.(type) {
		case *ast.Ident:
			if v, ok := p.uses[t].(*types.Var); ok && v.Parent() == p.pkg.Scope() {
				p.blame(t, "package variable %s changes after start-up", t.Name)
			}
			return
		case *ast.IndexExpr:
			target = t.X
		case *ast.SliceExpr:
			target = t.X
		case *ast.SelectorExpr:
			target = t.X
		case *ast.StarExpr:
			target = t.X
		case *ast.ParenExpr:
			target = t.X
		default:
			return
		}
	}
}

// packageOf returns the import path if x is the name of an imported package.
func (p *purity) packageOf(x ast.Expr) (string, bool) {
	name, ok := x.(*ast.Ident)
	if !ok {
		return "", false
	}
	imported, ok := p.uses[name].(*types.PkgName)
	if !ok {
		return "", false
	}
	return imported.Imported().Path(), true
}

// TestImportRulesBite breaks rules of each form in a small graph, and checks that the rest of the graph is accepted.
func TestImportRulesBite(t *testing.T) {
	fine := imports{
		"./internal/engine/bitset":    {"math/bits", "iter"},
		"./internal/engine/quantity":  {"math"},
		"./internal/engine/label":     {"./internal/engine/bitset", "strings"},
		"./internal/engine/model":     {"./internal/engine/label", "time", "encoding/binary"},
		"./internal/engine/plan":      {"./internal/engine/model"},
		"./internal/testing/audit":    {"./internal/engine/plan", "fmt"},
		"./internal/engine/placement": {"./internal/engine/plan", "sync"},
		"./internal/cluster":          {"./internal/cluster/state", "sigs.k8s.io/controller-runtime/pkg/client"},
		"./internal/cluster/state":    {"./internal/cluster/convert", "sync"},
		"./internal/cluster/convert":  {"./internal/engine/model", "k8s.io/api/core/v1"},
		"./cloud":                     {"context", "./api/karpenter/v1"},
		"./cloud/kwok":                {"./cloud", "os"},
		"./internal/telemetry":        {"github.com/prometheus/client_golang/prometheus", "./cloud"},
		"./api/karpenter/v1":          {"k8s.io/api/core/v1"},
		"k8s.io/api/core/v1":          {"k8s.io/apimachinery/pkg/runtime"},
		"fmt":                         {"os"}, // imports of the standard library are not checked
		"os":                          {"time"},
	}
	if found := importViolations(fine, importRules); len(found) > 0 {
		t.Fatalf("a valid graph is rejected: %q", found)
	}
	for _, tt := range []struct {
		from, imported string
		also           imports
		chain          string
	}{
		{"./internal/engine/model", "os", nil, "./internal/engine/model -> os: not on the list"},
		{"./internal/engine/model", "net/http", nil, "./internal/engine/model -> net/http: not on the list"},
		{"./internal/engine/model", "math/rand/v2", nil, "./internal/engine/model -> math/rand/v2: not on the list"},
		{"./internal/engine/model", "unsafe", nil, "./internal/engine/model -> unsafe: not on the list"},
		{"./internal/engine/plan", "k8s.io/api/core/v1", nil, "./internal/engine/plan -> k8s.io/api/core/v1: forbidden"},
		{"./internal/engine/plan", "example.com/units", imports{"example.com/units": {"k8s.io/klog/v2"}},
			"./internal/engine/plan -> example.com/units -> k8s.io/klog/v2: forbidden"},
		{"./internal/engine/bitset", "./internal/engine/quantity", nil, "./internal/engine/bitset -> ./internal/engine/quantity: forb"},
		{"./internal/engine/quantity", "./internal/engine/bitset", nil, "./internal/engine/quantity -> ./internal/engine/bitset: forb"},
		{"./internal/engine/label", "./internal/engine/quantity", nil, "./internal/engine/label -> ./internal/engine/quantity: forb"},
		{"./internal/engine/model", "./internal/engine/plan", nil, "./internal/engine/model -> ./internal/engine/plan: forb"},
		{"./internal/testing/audit", "./internal/engine/placement", nil, "./internal/testing/audit -> ./internal/engine/placement: forb"},
		{"./internal/testing/audit", "./internal/engine/explain", imports{"./internal/engine/explain": {"./internal/engine/placement"}},
			"./internal/testing/audit -> ./internal/engine/explain -> ./internal/engine/placement: forb"},
		{"./internal/cluster/convert", "k8s.io/client-go/rest", nil, "./internal/cluster/convert -> k8s.io/client-go/rest: forb"},
		{"./internal/cluster/state", "sigs.k8s.io/controller-runtime/pkg/client", nil,
			"./internal/cluster/state -> sigs.k8s.io/controller-runtime/pkg/client: forb"},
		{"./internal/cluster/state", "./internal/cluster", nil, "./internal/cluster/state -> ./internal/cluster: forb"},
		{"./internal/cluster/convert", "net", nil, "./internal/cluster/convert -> net: forb"},
		{"./cloud", "./internal/engine/label", nil, "./cloud -> ./internal/engine/label: forb"},
		{"./cloud/kwok", "./internal/engine/model", nil, "./cloud/kwok -> ./internal/engine/model: forb"},
		{"./cloud/kwok", "./internal/cluster", nil, "./cloud/kwok -> ./internal/cluster: forb"},
		{"./internal/telemetry", "./internal/engine/model", nil, "./internal/telemetry -> ./internal/engine/model: forb"},
		{"./api/karpenter/v1", "./cloud", nil, "./api/karpenter/v1 -> ./cloud: forb"},
		{"./internal/cluster/state", "./cloud/kwok", nil, "./internal/cluster/state -> ./cloud/kwok: forb"},
		{"./cmd/karpenter", "./cloud/cloudtest", nil, "./cmd/karpenter -> ./cloud/cloudtest: forbidden, because the controller's image"},
		{"./cmd/other", "./cloud/kwok", imports{"./cloud/kwok": {"./cloud/cloudtest"}},
			"./cmd/other -> ./cloud/kwok -> ./cloud/cloudtest: forb"},
	} {
		broken := maps.Clone(fine)
		maps.Copy(broken, tt.also)
		broken[tt.from] = append(slices.Clone(fine[tt.from]), tt.imported)
		found := importViolations(broken, importRules)
		if !slices.ContainsFunc(found, func(v string) bool { return strings.HasPrefix(v, tt.chain) }) {
			t.Errorf("%s imports %s: want %q..., found %q", tt.from, tt.imported, tt.chain, found)
		}
	}
}

// TestStalePatternsBite checks that a rule of a package that is gone, and an exception for one, are found.
func TestStalePatternsBite(t *testing.T) {
	got := stalePatterns(imports{"./cloud": nil, "./plugin/top": nil}, []importRule{
		{from: "./plugin/...", except: []string{"./cloud", "./internal/cloud"}}, {from: "./plugin/web", except: []string{"./cloud/..."}},
	})
	want := []string{"the rule of ./plugin/...: ./internal/cloud names no package", "the rule of ./plugin/web: ./plugin/web names no package"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
}

// TestSourceRulesBite breaks each rule of the source once.
func TestSourceRulesBite(t *testing.T) {
	const model = "internal/engine/model/model.go"
	for _, tt := range []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"sound", map[string]string{
			model: `package model
				import "time"
				var names = map[string]int{"a": 1}
				var first = names["a"]
				type clock struct{}
				func (clock) Now() time.Time { return time.Time{} }
				func f(now time.Time) time.Duration {
					names := names
					names = nil
					var time clock
					time.Now()
					first := first
					first++
					return now.Sub(now)
				}`,
			"internal/engine/placement/parallel.go": "package placement\nimport \"sync\"\nvar _ sync.Mutex\nfunc f() { go f() }",
			"internal/cluster/store.go":             "package cluster\nimport \"time\"\nvar n = 1\nfunc f() { go f(); n = 2; time.Sleep(1) }",
		}, nil},
		{"the clock", map[string]string{model: "package model\nimport \"time\"\nvar now = time.Now()"},
			[]string{model + ":3: time.Now: time is the snapshot's Now"}},
		{"the clock by another name", map[string]string{model: "package model\nimport t \"time\"\nfunc f() { f := t.Since; <-t.After(1); _ = f }"},
			[]string{model + ":3: time.Since: time is the snapshot's Now", model + ":3: time.After: time is the snapshot's Now"}},
		{"dot import", map[string]string{model: "package model\nimport . \"time\"\nvar now = Now()"},
			[]string{model + ":2: dot import of time hides where names come from"}},
		{"chance", map[string]string{model: "package model\nimport _ \"math/rand/v2\""},
			[]string{model + ":2: import of math/rand/v2: the same snapshot must give the same plan"}},
		{"unsafe", map[string]string{model: "package model\nimport _ \"unsafe\""},
			[]string{model + ":2: import of unsafe: the same snapshot must give the same plan"}},
		{"lock", map[string]string{model: "package model\nimport _ \"sync/atomic\""},
			[]string{model + ":2: import of sync/atomic outside [internal/engine/placement/parallel.go]: a lock shares state"}},
		{"goroutine", map[string]string{model: "package model\nfunc f() {\n go f()\n}"},
			[]string{model + ":3: goroutine outside [internal/engine/placement/parallel.go]"}},
		{"the state of a cluster", map[string]string{
			"internal/cluster/state/a.go": "package state\nimport \"sync\"\nimport \"time\"\nvar l sync.Mutex\nfunc f() {\n time.AfterFunc(1, f)\n go f()\n}"},
			[]string{"internal/cluster/state/a.go:6: time.AfterFunc: time is the snapshot's Now",
				"internal/cluster/state/a.go:7: goroutine outside [internal/engine/placement/parallel.go]"}},
		{"package variables", map[string]string{
			"internal/engine/model/a.go": "package model\nvar n int\nvar m = map[int]int{}\nvar s struct{ f []int }",
			model: `package model
				import "fmt"
				func init() { n = 1 }
				func f() {
					n++
					n, _ = fmt.Println()
					m[1] = 2
					s.f[0] += fmt.Unknown()
					delete(m, 1)
					for n = range 3 {
					}
					p := &s.f
					_ = p
				}`,
		}, []string{
			model + ":3: package variable n changes after start-up", model + ":5: package variable n changes after start-up",
			model + ":6: package variable n changes after start-up", model + ":7: package variable m changes after start-up",
			model + ":8: package variable s changes after start-up", model + ":9: package variable m changes after start-up",
			model + ":10: package variable n changes after start-up", model + ":12: package variable s changes after start-up",
		}},
		{"long file", map[string]string{"cmd/karpenter/main.go": "package main\n" + strings.Repeat("\n", maxLines)},
			[]string{"cmd/karpenter/main.go: 601 lines, more than 600: split it"}},
		{"a read that writes", map[string]string{"internal/controller/x.go": "package controller\nfunc f() bool {\n return claim.StatusConditions().Get(\"A\").IsTrue()\n}"},
			[]string{"internal/controller/x.go:3:9: StatusConditions().Get writes to the object that it reads: use Condition"}},
		{"a second converter", map[string]string{"plugin/offline/x.go": "package offline\nvar s = convert.Pod(p, v, nil)\nvar b = model.NewBuilder()"},
			[]string{"plugin/offline/x.go:2:9: convert.Pod: show the object to package state",
				"plugin/offline/x.go:3:9: model.NewBuilder: show the object to package state"}},
		{"vague name", map[string]string{"internal/cloud/aws/util/x.go": "package util"},
			[]string{"internal/cloud/aws/util/x.go: package util: name a package for the noun that it is about"}},
		{"no Go at all", map[string]string{"internal/x.go": "nothing"},
			[]string{"internal/x.go:1:1: expected 'package', found nothing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := sourceViolations(tt.files); !slices.Equal(got, tt.want) {
				t.Errorf("found\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(tt.want, "\n  "))
			}
		})
	}
}
