package aws

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/call"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
)

// Codes of the findings of Examine. docs/doctor.md lists them, and a test compares the two.
const (
	CannotLook            = "CannotLook"            // a check could not be made for the time being
	CloudUnreachable      = "CloudUnreachable"      // AWS does not respond, or does not accept the credentials
	CloudPermissionDenied = "CloudPermissionDenied" // AWS denies a permission that the controller needs
	CloudClockSkew        = "CloudClockSkew"        // the local clock differs from that of AWS
	ClusterUnknown        = "ClusterUnknown"        // EKS has no cluster of this name
	ClusterDiffers        = "ClusterDiffers"        // EKS describes another cluster than this one
	VersionUntried        = "VersionUntried"        // the Kubernetes version is outside of the tested range
	QueueMissing          = "QueueMissing"          // there is no interruption queue of this name
	SubnetsMissing        = "SubnetsMissing"        // a class selects no subnet
	SubnetsFull           = "SubnetsFull"           // no subnet of a class has a free address
	SecurityGroupsMissing = "SecurityGroupsMissing" // a class selects no security group
	ImagesMissing         = "ImagesMissing"         // a class selects no image
	ProfileMissing        = "ProfileMissing"        // the instance profile of a class does not exist
	ProfileWithoutRole    = "ProfileWithoutRole"    // the profile does not have the role that the class requires
	SpotRoleMissing       = "SpotRoleMissing"       // the service-linked role of EC2 Spot does not exist
	LaunchRefused         = "LaunchRefused"         // EC2 refuses the launch that a class describes
	PodsPerNodeDiffer     = "PodsPerNodeDiffer"     // the VPC CNI has settings that the class or the controller does not know
	TagsMissing           = "TagsMissing"           // an instance of the cluster has lost the tags by which it is found
)

// mostSkew is the maximum difference between the local clock and that of AWS. From five minutes on, AWS rejects signed
// requests.
const mostSkew = time.Minute

var _ cloud.Examiner = (*Provider)(nil)

// examination is one run of Examine. Findings are keyed by code and object, with one per pair.
type examination struct {
	*Provider
	findings map[[2]string]cloud.Finding

	classes []awsv1.EC2NodeClass
	pools   []karpv1.NodePool
	claims  []karpv1.NodeClaim
	facts   discovery.Facts
}

// Examine implements cloud.Examiner. It reads, makes dry runs, and receives a message from the queue, which is
// invisible to other receivers for one second. It changes nothing.
func (p *Provider) Examine(ctx context.Context) []cloud.Finding {
	e := &examination{Provider: p, findings: map[[2]string]cloud.Finding{}}
	if e.reach(ctx) {
		e.read(ctx)
		for _, look := range []func(context.Context){
			e.cluster, e.permissions, e.queue, e.eachClass, e.spotRole, e.machines,
		} {
			look(ctx)
		}
	}
	found := slices.Collect(maps.Values(e.findings))
	slices.SortFunc(found, func(a, b cloud.Finding) int {
		return cmp.Or(strings.Compare(a.Code, b.Code), strings.Compare(a.Object, b.Object))
	})
	return found
}

// found records a finding. The first one of a code for an object is kept.
func (e *examination) found(code, object, fix, problem string, arguments ...any) {
	at := [2]string{code, object}
	if _, known := e.findings[at]; known {
		return
	}
	text := strings.Join(strings.Fields(fmt.Sprintf(problem, arguments...)), " ")
	e.findings[at] = cloud.Finding{Code: code, Object: object, Problem: text, Fix: fix}
}

const roleFix = "allow it in the IAM policy of the controller's role; docs/aws-iam-policy.json has the whole policy"

// asked records a finding if a call failed, and reports whether it succeeded. The permission is in IAM notation.
func (e *examination) asked(err error, permission string) bool {
	var failed *call.Error
	var absent *NoRegionError
	switch {
	case err == nil:
		return true
	case errors.As(regionOf(e.opts.Region, err), &absent):
		e.found(CloudUnreachable, "aws", "set AWS_REGION to the region of the cluster", "%s", absent)
	case errors.As(err, &failed) && failed.Forbidden():
		feature := featureOf(permission)
		e.found(CloudPermissionDenied, permission, feature.fix(), "the controller is not allowed to call %s, %s: %s",
			permission, feature.need(), failed)
	default:
		e.found(CannotLook, permission, "retry; if the error persists, check the network between the controller and AWS, and the health of the service", "AWS did not respond to %s: %s", permission, err)
	}
	return false
}

// do calls a service with the timeout that all calls of the provider have.
func do(ctx context.Context, e *examination, permission string, send func(context.Context) error) error {
	service, operation, _ := strings.Cut(permission, ":")
	_, err := call.Do(ctx, e.sources.Calls, strings.ToUpper(service), operation,
		func(ctx context.Context) (struct{}, error) { return struct{}{}, send(ctx) })
	var answer *call.Error
	if errors.As(err, &answer) && answer.Code == "DryRunOperation" {
		return nil
	}
	return err
}

// reach checks that AWS responds and accepts the credentials, and compares the clocks.
func (e *examination) reach(ctx context.Context) bool {
	var date time.Time
	err := do(ctx, e, "ec2:DescribeInstanceTypes", func(ctx context.Context) error {
		_, err := e.opts.Clients.EC2.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{DryRun: aws.Bool(true)})
		date = dateOf(err)
		return err
	})
	if skew := e.opts.Clock.Now().Sub(date); !date.IsZero() && skew.Abs() > mostSkew {
		e.found(CloudClockSkew, "clock", "synchronize the clock of this machine (chrony, NTP): AWS refuses requests that were signed more than five minutes ago",
			"the local clock and the clock of AWS differ by %s", skew.Round(time.Second))
	}
	var failed *call.Error
	var absent *NoRegionError
	switch {
	case err == nil:
		return true
	case errors.As(regionOf(e.opts.Region, err), &absent):
		e.found(CloudUnreachable, "aws", "set AWS_REGION to the region of the cluster", "%s", absent)
	case errors.As(err, &failed) && failed.Kind == call.Denied && !failed.Forbidden():
		e.found(CloudUnreachable, "aws", "check the controller's credentials: Pod Identity or the role annotation of its service account, and the trust policy of the role",
			"AWS does not accept the credentials: %s", failed)
	case failed != nil && failed.Code != "":
		return true // AWS responds; missing permissions are found below
	default:
		e.found(CloudUnreachable, "aws", "check the network, the region (AWS_REGION), the endpoint (AWS_ENDPOINT_URL), and the credentials (AWS_PROFILE, Pod Identity, instance metadata)",
			"AWS does not answer: %s", err)
	}
	return false
}

// dateOf returns the time in an error response of AWS, or zero if there was no error response.
func dateOf(err error) time.Time {
	var answer *smithyhttp.ResponseError
	if !errors.As(err, &answer) || answer.Response == nil {
		return time.Time{}
	}
	date, err := http.ParseTime(answer.Response.Header.Get("Date"))
	if err != nil {
		return time.Time{}
	}
	return date
}

// read lists the objects that the calls to AWS concern.
func (e *examination) read(ctx context.Context) {
	var classes awsv1.EC2NodeClassList
	var pools karpv1.NodePoolList
	var claims karpv1.NodeClaimList
	for _, list := range []client.ObjectList{&classes, &pools, &claims} {
		if err := e.opts.Live.List(ctx, list); err != nil {
			e.found(CannotLook, fmt.Sprintf("%T", list), "run doctor as a user that is allowed to list them", "cannot be listed: %s", err)
		}
	}
	e.classes, e.pools = classes.Items, pools.Items
	e.claims = slices.DeleteFunc(claims.Items, func(c karpv1.NodeClaim) bool { return c.Spec.NodeClassRef.Group != awsv1.Group })
}
