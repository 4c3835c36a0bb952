package v1

// SubnetSelectorTerm matches subnets by all tags or by ID.
type SubnetSelectorTerm struct {
	// Tags of the subnet. All must match. The value * matches any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the subnet.
	// +kubebuilder:validation:Pattern:=`^subnet-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// SecurityGroupSelectorTerm matches security groups by all tags, by ID or by name.
type SecurityGroupSelectorTerm struct {
	// Tags of the security group. All must match. The value * matches any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the security group.
	// +kubebuilder:validation:Pattern:=`^sg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the security group. This is not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
}

// CapacityReservationSelectorTerm matches capacity reservations by all fields that are set.
type CapacityReservationSelectorTerm struct {
	// Tags of the reservation. All must match. The value * matches any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the reservation.
	// +kubebuilder:validation:Pattern:=`^cr-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// OwnerID is the ID of the account that owns the reservation: 12 digits.
	// +kubebuilder:validation:Pattern:=`^[0-9]{12}$`
	// +optional
	OwnerID string `json:"ownerID,omitempty"`
	// InstanceMatchCriteria is open for reservations that all instances with matching attributes use, or
	// targeted for reservations that only instances that name them use.
	// +kubebuilder:validation:Enum:={open,targeted}
	// +optional
	InstanceMatchCriteria string `json:"instanceMatchCriteria,omitempty"`
}

// PlacementGroupSelector selects one placement group.
type PlacementGroupSelector struct {
	// Name of the placement group.
	// +kubebuilder:validation:MinLength:=1
	// +optional
	Name string `json:"name,omitempty"`
	// ID of the placement group.
	// +kubebuilder:validation:Pattern:=`^pg-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
}

// AMISelectorTerm matches machine images by all fields that are set.
type AMISelectorTerm struct {
	// Alias selects an image that AWS recommends: family@version or family@latest, for example al2023@latest or
	// bottlerocket@v1.20.4. Families: al2, al2023, bottlerocket, windows2019, windows2022, windows2025. The
	// Windows families support latest only.
	// +kubebuilder:validation:XValidation:message="alias must be family@version, such as al2023@latest",rule="self.matches('^[a-zA-Z0-9]+@.+$')"
	// +kubebuilder:validation:XValidation:message="the family of alias must be al2, al2023, bottlerocket, windows2019, windows2022 or windows2025",rule="self.find('^[^@]+') in ['al2', 'al2023', 'bottlerocket', 'windows2019', 'windows2022', 'windows2025']"
	// +kubebuilder:validation:XValidation:message="the version of a Windows alias must be latest",rule="!self.startsWith('windows') || self.matches('^windows[0-9]+@latest$')"
	// +kubebuilder:validation:MaxLength:=30
	// +optional
	Alias string `json:"alias,omitempty"`
	// Tags of the image. All must match. The value * matches any value.
	// +kubebuilder:validation:XValidation:message="tag keys and values must not be empty",rule="self.all(k, k != '' && self[k] != '')"
	// +kubebuilder:validation:MaxProperties:=20
	// +optional
	Tags map[string]string `json:"tags,omitempty"`
	// ID of the image.
	// +kubebuilder:validation:Pattern:=`^ami-[0-9a-z]+$`
	// +optional
	ID string `json:"id,omitempty"`
	// Name of the image, where * matches any text. This is not its tag Name.
	// +optional
	Name string `json:"name,omitempty"`
	// Owner of the image: an account ID, self, amazon or another alias. Unset: self and amazon for names, any
	// owner for tags.
	// +optional
	Owner string `json:"owner,omitempty"`
	// SSMParameter is the name or ARN of a Systems Manager parameter that holds an image ID.
	// +optional
	SSMParameter string `json:"ssmParameter,omitempty"`
}
