print("torpor")
