package launch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	corev1 "k8s.io/api/core/v1"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
	"github.com/karpenter-go/karpenter/cloud"
)

// Trial is a dry run of a launch of one type, to find out whether the launch is allowed. Policies can depend on the
// type, the volumes, the metadata options and the tenancy of a launch
// (https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazonec2.html#amazonec2-policy-keys).
type Trial struct {
	Type  string
	Image string
	Data  *ec2types.RequestLaunchTemplateData
	price float64
}

// trialTypes is the number of types to try: a policy may allow some types and not others.
const trialTypes = 2

// Trials returns the trials for the cheapest ordinary types that the orders may launch, cheapest first. An order
// without available types or with invalid user data has none.
func Trials(orders []*Order) []Trial {
	tenancy := awsv1.TenancyDefault
	var trials []Trial
	for _, o := range orders {
		s, err := Select(o.Claim, cloud.WithoutReserved(o.Types))
		if err != nil { // it may allow nothing else
			s, err = Select(o.Claim, o.Types)
		}
		if err != nil {
			continue
		}
		if s.Tenancy == awsv1.TenancyDedicated {
			tenancy = s.Tenancy
		}
		s.CapacityType = karpv1.CapacityTypeOnDemand
		seen := map[string]bool{}
		for _, w := range withoutExotic(s.Ways) {
			if seen[w.Type.Name] || len(seen) == trialTypes {
				continue
			}
			seen[w.Type.Name] = true
			variant := o.variantOf(w)
			variant.hold = Hold{}
			if t, err := o.template(&s, variant); err == nil {
				trials = append(trials, Trial{Type: w.Type.Name, Image: aws.ToString(t.data.ImageId), Data: t.data, price: w.Offering.Price})
			}
		}
	}
	slices.SortFunc(trials, func(a, b Trial) int { return cmp.Or(cmp.Compare(a.price, b.price), cmp.Compare(a.Type, b.Type)) })
	trials = slices.CompactFunc(trials, func(a, b Trial) bool { return a.Type == b.Type })
	for i := range trials {
		trials[i].Data.Placement.Tenancy = ec2types.Tenancy(tenancy)
	}
	return trials[:min(len(trials), trialTypes)]
}

// DefaultTrial returns the trial of a class that no pool uses: m5.large or m6g.large, which every region has, with an
// image of the class. Errors are those of user data.
func (o *Order) DefaultTrial() (Trial, error) {
	image := o.Class.Status.AMIs[0]
	if k := slices.IndexFunc(o.Class.Status.AMIs, ordinary); k >= 0 {
		image = o.Class.Status.AMIs[k]
	}
	typeName := string(ec2types.InstanceTypeM5Large)
	for _, r := range image.Requirements {
		if r.Key == corev1.LabelArchStable && slices.Contains(r.Values, "arm64") {
			typeName = string(ec2types.InstanceTypeM6gLarge)
		}
	}
	s := Selection{CapacityType: karpv1.CapacityTypeOnDemand, Tenancy: awsv1.TenancyDefault}
	t, err := o.template(&s, templateFor{image: image.ID, pods: 29})
	return Trial{Type: typeName, Image: image.ID, Data: t.data}, err
}

// ordinary reports whether the image is for machines without accelerators.
func ordinary(image awsv1.AMI) bool {
	return !slices.ContainsFunc(image.Requirements, func(r corev1.NodeSelectorRequirement) bool {
		return r.Operator == corev1.NodeSelectorOpExists && (r.Key == awsv1.LabelInstanceGPUCount || r.Key == awsv1.LabelInstanceAcceleratorCount)
	})
}

// Instance returns the request for a dry run of one instance in a subnet.
func (t Trial) Instance(subnet string, tags []ec2types.TagSpecification) (*ec2.RunInstancesInput, error) {
	in, err := runInput(t.Data)
	if err != nil {
		return nil, err
	}
	in.DryRun, in.MinCount, in.MaxCount = aws.Bool(true), aws.Int32(1), aws.Int32(1)
	in.InstanceType, in.TagSpecifications = ec2types.InstanceType(t.Type), tags
	for i := range in.NetworkInterfaces {
		in.NetworkInterfaces[i].SubnetId = aws.String(subnet)
	}
	return in, nil
}

// runInput converts launch template data to a RunInstances request. The members have the same names. A member that
// RunInstances does not have is an error
// (https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_RunInstances.html).
func runInput(data *ec2types.RequestLaunchTemplateData) (*ec2.RunInstancesInput, error) {
	text, err := json.Marshal(data)
	if err != nil {
		return nil, fmt.Errorf("writing launch template data: %w", err)
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, fmt.Errorf("reading launch template data: %w", err)
	}
	for name, value := range members {
		if empty := string(value); empty == "null" || empty == `""` {
			delete(members, name)
		}
	}
	if text, err = json.Marshal(members); err != nil {
		return nil, fmt.Errorf("writing launch template data: %w", err)
	}
	in := &ec2.RunInstancesInput{}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(in); err != nil {
		return nil, fmt.Errorf("converting launch template data to a request: %w", err)
	}
	return in, nil
}
