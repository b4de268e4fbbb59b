print("torpord")
